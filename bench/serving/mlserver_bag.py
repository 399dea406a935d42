"""A model of the signature bag behind MLServer; bench/serving/compare.py writes the settings."""
import onnxruntime
from mlserver import MLModel
from mlserver.codecs import NumpyCodec
from mlserver.types import InferenceRequest, InferenceResponse


class Bag(MLModel):
    async def load(self) -> bool:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(self.settings.parameters.uri, options, providers=["CPUExecutionProvider"])
        self.names = [o.name for o in self.session.get_outputs()]
        return True

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        got = self.session.run(self.names, {i.name: NumpyCodec.decode_input(i) for i in payload.inputs})
        return InferenceResponse(id=payload.id, model_name=self.name, model_version=self.version,
                                 outputs=[NumpyCodec.encode_output(n, v) for n, v in zip(self.names, got)])
