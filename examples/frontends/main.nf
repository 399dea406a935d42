// The shards of a planned experiment as processes of Nextflow, and the report:
//
//   nextflow run main.nf --folder /shared/smoke
import groovy.json.JsonSlurper

process shard {
    cpus 1
    maxRetries 3
    errorStrategy { task.exitStatus == 75 ? 'retry' : 'finish' } // interrupted

    input:
    val i
    val shards

    output:
    val i

    script:
    "miplc experiment -o ${params.folder} --shard ${i}/${shards} --jobs ${task.cpus}"
}

process report {
    input:
    val done

    script:
    "miplc report ${params.folder}"
}

workflow {
    shards = new JsonSlurper().parse(file("${params.folder}/shards.json")).shards.size()
    report(shard(Channel.of(1..shards), shards).collect())
}
