"""The configurations of launch/, as Accelerate reads them."""

from typing import Any

import pytest
import torch.distributed.run
from accelerate.commands.config.config_args import ClusterConfig
from accelerate.commands.launch import launch_command, launch_command_parser

from tests.toy import ROOT


@pytest.mark.parametrize("name", ["gpus", "fsdp", "nodes"])
def test_accelerate_reads_each_configuration(name: str) -> None:
    config = ClusterConfig.from_yaml_file(str(ROOT / "launch" / f"{name}.yaml"))
    assert config.distributed_type == ("FSDP" if name == "fsdp" else "MULTI_GPU")
    assert config.num_machines == (2 if name == "nodes" else 1)


@pytest.mark.parametrize("name", ["gpus", "fsdp"])
def test_a_process_is_started_for_each_gpu_that_there_is(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[Any] = []
    monkeypatch.setattr(torch.distributed.run, "run", started.append)
    monkeypatch.setattr("accelerate.commands.launch.check_cuda_p2p_ib_support", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 5)
    file = str(ROOT / "launch" / f"{name}.yaml")
    launch_command(launch_command_parser().parse_args(["--config_file", file, "-m", "stages.pretrain"]))
    (arguments,) = started
    config, _, command = torch.distributed.run.config_from_args(arguments)
    assert config.nproc_per_node == 5
    assert command[-2:] == ["-m", "stages.pretrain"]
