# evengraph on a CPU. The two commands of the README, on the folder that is mounted:
#
#   docker build -t evengraph .
#   docker run --rm -v "$PWD:/work" evengraph run examples/accounts --label kind --drop status --cost-miss 10 --save model
#   docker run --rm -v "$PWD:/work" evengraph predict model examples/next-month --known examples/accounts --top 20 --out scored.csv
FROM python:3.11-slim

# The default build of torch for Linux includes several gigabytes of CUDA. With the index of PyTorch's
# CPU builds, --build-arg TORCH_INDEX=..., the image is smaller.
ARG TORCH_INDEX
RUN pip install --no-cache-dir torch==2.13.0 ${TORCH_INDEX:+--index-url "$TORCH_INDEX"}
COPY . /src
RUN pip install --no-cache-dir '/src[onnx]' && rm -rf /src

RUN useradd --create-home evengraph
USER evengraph
WORKDIR /work
ENTRYPOINT ["evengraph"]
CMD ["--help"]
