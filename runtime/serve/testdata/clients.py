"""Asks a server with clients that others wrote.

    clients.py tritonclient|kserve HTTP_ADDRESS GRPC_ADDRESS < cases.json

The cases are bags with the predictions that the model "bag" gives for them. Prints the
largest difference of each way of asking; ends with 1 where a client is misled.
"""
import asyncio
import json
import sys

import numpy as np

library, web, rpc = sys.argv[1:]
cases = json.load(sys.stdin)
OUTPUTS = ("probabilities", "attention")


def bag(case):
    return np.asarray(case["instances"], np.float32)


def difference(case, got):
    """got gives the array of an output by its name."""
    worst = 0.0
    for name in OUTPUTS:
        want = np.asarray([case[name]], np.float32)
        assert got(name).shape == want.shape, (name, got(name).shape, want.shape)
        worst = max(worst, float(np.abs(got(name) - want).max()))
    return worst


def triton(kind, module, client, **binary):
    assert client.is_server_live() and client.is_server_ready() and client.is_model_ready("bag")
    assert not client.is_model_ready("nosuch")
    assert client.get_server_metadata() and "instances" in str(client.get_model_metadata("bag"))
    worst = 0.0
    for number, case in enumerate(cases):
        given = module.InferInput("instances", list(bag(case).shape), "FP32")
        given.set_data_from_numpy(bag(case), **binary)
        asked = [module.InferRequestedOutput(o, **binary) for o in OUTPUTS]
        answer = client.infer("bag", [given], outputs=asked, request_id=str(number))
        response = answer.get_response()
        assert (response["id"] if isinstance(response, dict) else response.id) == str(number)
        worst = max(worst, difference(case, answer.as_numpy))
    wrong = module.InferInput("instances", [1, 7], "FP32")
    wrong.set_data_from_numpy(np.zeros((1, 7), np.float32), **binary)
    classes = module.InferRequestedOutput("probabilities", class_count=2, **binary)
    for inputs, outputs, reason in (([wrong], None, "the model expects"), ([given], [classes], "classification")):
        try:
            client.infer("bag", inputs, outputs=outputs)
            raise SystemExit(f"{kind}: no error that says {reason!r}")
        except module.InferenceServerException as e:
            assert reason in str(e), e
    print(f"tritonclient {kind} {binary or ''}: {len(cases)} bags, largest difference {worst:.1e}")


async def kserve_all():
    from kserve import InferenceGRPCClient, InferenceRESTClient, InferInput, InferRequest, RESTConfig

    url = f"http://{web}"
    rest, grpc = InferenceRESTClient(config=RESTConfig(protocol="v2", retries=0)), InferenceGRPCClient(url=rpc)
    assert await rest.is_server_live(url) and await rest.is_server_ready(url) and await rest.is_model_ready(url, "bag")
    assert await grpc.is_server_live() and await grpc.is_server_ready() and await grpc.is_model_ready("bag")
    for kind, raw in (("REST", False), ("REST", True), ("gRPC", True)):
        worst = 0.0
        for number, case in enumerate(cases):
            given = InferInput("instances", list(bag(case).shape), "FP32")
            given.set_data_from_numpy(bag(case), binary_data=raw)
            request = InferRequest(model_name="bag", infer_inputs=[given], request_id=str(number))
            if kind == "REST":
                answer = await rest.infer(url, request, model_name="bag")
            else:
                answer = await grpc.infer(request)
            assert answer.id == str(number), answer.id
            outputs = {o.name: o for o in answer.outputs}
            worst = max(worst, difference(case, lambda name: outputs[name].as_numpy()))
        print(f"kserve {kind}, binary {raw}: {len(cases)} bags, largest difference {worst:.1e}")
    await rest.close()
    await grpc.close()


if library == "kserve":
    asyncio.run(kserve_all())
else:
    import tritonclient.grpc as g
    import tritonclient.http as h

    for binary in (True, False):
        triton("http", h, h.InferenceServerClient(web), binary_data=binary)
    triton("grpc", g, g.InferenceServerClient(rpc))
