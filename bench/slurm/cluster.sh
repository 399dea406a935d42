#!/usr/bin/env bash
# A Slurm cluster of several nodes on one Linux machine, without systemd or cgroups.
#
#   bash bench/slurm/cluster.sh up DIR [NODES [PORT]]   starts it; all it writes lies in DIR
#   export SLURM_CONF=DIR/slurm.conf                    for sbatch, squeue and the like
#   bash bench/slurm/cluster.sh node DIR NAME           starts the slurmd of a node again
#   bash bench/slurm/cluster.sh down DIR                cancels all jobs and ends it
#   bash bench/slurm/cluster.sh check                   says what is missing here, with exit code 77
#
# Needs root, and Debian's packages slurmctld, slurmd, slurm-client and munge. The
# controller listens on PORT (17000) of 127.0.0.1, the nodes n1, n2, ... on those above.
set -euo pipefail

# The variables that the user's shell sets for another cluster do not apply to this one.
unset "${!SLURM_@}" "${!SBATCH_@}"

configure() {
  local nodes=$1 port=$2 host
  host=$(hostname -s)
  cat <<END
ClusterName=miplc
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
# A task that is queued again starts as soon as its former credential has expired.
AuthInfo=socket=$dir/munge/socket,cred_expire=15
CredType=cred/munge
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool/%n
SlurmctldPidFile=$dir/run/slurmctld.pid
SlurmdPidFile=$dir/run/%n.pid
SlurmctldLogFile=$dir/log/slurmctld.log
SlurmdLogFile=$dir/log/%n.log
SlurmctldDebug=info
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/filetxt
JobCompLoc=$dir/log/jobs.txt
MpiDefault=none
SwitchType=switch/none
# Each node is told two processors, however many the machine has.
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1
# A node that was lost and comes back is used again; what ran on it is queued again.
ReturnToService=2
SlurmdTimeout=20
KillWait=10
MinJobAge=600
END
  for n in $(seq "$nodes"); do
    echo "NodeName=n$n NodeHostname=$host NodeAddr=127.0.0.1 Port=$((port + n)) CPUs=2 RealMemory=2000 State=UNKNOWN"
  done
  echo "PartitionName=main Nodes=n[1-$nodes] Default=YES MaxTime=INFINITE State=UP"
}

# node NAME starts its slurmd.
node() {
  mkdir -p "$dir/spool/$1"
  slurmd -f "$SLURM_CONF" -N "$1"
}

# idle N waits until N nodes can take jobs.
idle() {
  for _ in $(seq 150); do
    [ "$(sinfo -h -N -t idle -o %N 2>/dev/null | wc -l)" -ge "$1" ] && return
    sleep 0.2
  done
  sinfo -N
  tail -n 5 "$dir"/log/*.log
  return 1
}

up() {
  local nodes=${1:-4} port=${2:-17000}
  mkdir -p "$dir"/{munge,state,spool,log,run}
  [ -e "$dir/munge/key" ] || (umask 077 && head -c 128 /dev/urandom >"$dir/munge/key")
  munged --force --key-file="$dir/munge/key" --socket="$dir/munge/socket" \
    --pid-file="$dir/munge/pid" --log-file="$dir/log/munged.log" --seed-file="$dir/munge/seed" 2>"$dir/log/munged.txt"
  configure "$nodes" "$port" >"$SLURM_CONF"
  slurmctld -f "$SLURM_CONF" -c
  for n in $(seq "$nodes"); do node "n$n"; done
  idle "$nodes"
}

# running says whether a process of the pid file is there.
running() { [ -e "$1" ] && readlink -q "/proc/$(cat "$1")/exe" >/dev/null; }

down() {
  local file
  if running "$dir/run/slurmctld.pid"; then
    scancel --full --user=root || true
    for _ in $(seq 100); do
      [ -n "$(squeue -h)" ] || break
      sleep 0.2
    done
  fi
  for file in "$dir"/run/n*.pid "$dir/run/slurmctld.pid" "$dir/munge/pid"; do
    running "$file" || continue
    kill "$(cat "$file")"
    for _ in $(seq 50); do
      running "$file" || break
      sleep 0.2
    done
  done
}

check() {
  local program
  [ "$(uname)" = Linux ] || { echo "Slurm's daemons need Linux" && return 77; }
  [ "$(id -u)" = 0 ] || { echo "Slurm's daemons need root" && return 77; }
  for program in slurmctld slurmd munged sbatch; do
    command -v $program >/dev/null ||
      { echo "$program is not installed: apt-get install slurmctld slurmd slurm-client munge" && return 77; }
  done
}

usage() { sed -n '4,8s/^# *//p' "$0" >&2; exit 2; }
if [ "${1:-}" = check ]; then check; exit; fi
[ $# -ge 2 ] || usage
mkdir -p "$2"
dir=$(realpath "$2")
export SLURM_CONF=$dir/slurm.conf
case $1 in
up) up "${@:3}" ;;
node) node "${3:?the name of a node}" ;;
down) down ;;
*) usage ;;
esac
