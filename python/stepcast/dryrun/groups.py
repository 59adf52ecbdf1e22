"""Process groups of any size in one process: collectives are recorded, not executed."""

from __future__ import annotations

import collections
import math
import os
import pickle
import sys
import time
import weakref
from typing import Any, Deque, Dict, Iterator, List, Optional, Set, Tuple

import torch
import torch.distributed as dist
import torch.distributed.distributed_c10d as c10d
from torch._C._distributed_c10d import ProcessGroup, Work
from torch._subclasses.fake_tensor import FakeTensor

from stepcast.dryrun.mode import Value, tensors_in
from stepcast.dryrun.recorder import Leaf, type_name

# Operators of c10d by the positions of their tensors: (outputs, inputs) among the arguments.
_BOTH = ("allreduce_", "broadcast_", "reduce_", "allreduce_coalesced_")
_NAMES = {"allreduce_": "allreduce", "broadcast_": "broadcast", "reduce_": "reduce", "recv_": "recv", "recv_any_source_": "recv",
          "allgather_": "all_gather", "gather_": "gather", "scatter_": "scatter", "reduce_scatter_": "reduce_scatter",
          "alltoall_": "all_to_all", "alltoall_base_": "all_to_allv"}


class DryWork(Work):
    """The handle of a collective that is not executed. wait() is recorded, because the program may wait late."""

    def __init__(self, groups: "Collectives", wait: Optional[Leaf], result: List[torch.Tensor]) -> None:
        super().__init__()
        self._groups, self._wait = groups, wait
        self._result = [weakref.ref(t) for t in result]  # the program owns their memory
        groups.works.append(self)  # C++ does not keep the Python object alive

    def wait(self, timeout: Any = None) -> bool:
        wait, self._wait = self._wait, None
        if wait is not None:
            self._groups.waited(wait)
        return True

    synchronize = block_current_stream = wait

    def is_completed(self) -> bool:
        return True

    is_success = is_completed

    def exception(self) -> Any:
        return None

    def result(self) -> List[torch.Tensor]:
        return [t for t in (r() for r in self._result) if t is not None]

    def get_future(self) -> Any:
        self.wait()
        future: Any = torch.futures.Future()
        future.set_result(self.result())
        return future


class Collectives:
    """All groups of this rank, and the collectives in them."""

    namespaces = frozenset({"c10d", "_c10d_functional", "_dtensor"})

    def __init__(self, recorder: Any, job: Dict[str, Any]) -> None:
        self.recorder = recorder
        self.rank, self.world_size = job["rank"], job["world_size"]
        self.folder = job["shared"]  # folder in which ranks exchange objects
        self.tell: Any = lambda state, **_: None  # set by the session
        self.works: Deque[DryWork] = collections.deque(maxlen=20000)
        self.peers: Set[int] = set()  # peer ranks of sends and receives
        self.stages: Dict[str, List[int]] = {}  # ranks of the groups with sends and receives
        self.kinds: List[List[int]] = []  # groups of ranks that differ, by the amounts that they send
        self._sequence: Dict[str, int] = {}
        self._waits: Dict[int, Tuple[Any, ...]] = {}
        self._messages: Dict[Tuple[int, int], int] = {}

    @staticmethod
    def is_collective(operator: Any, args: Any, kwargs: Any) -> bool:
        """Whether an operator is a collective: one of c10d, or a functional one that names a group or waits."""
        if operator.namespace == "c10d" or operator.name.endswith("::wait_tensor"):
            return True
        return any(isinstance(a, str) for a in (*args, *kwargs.values()))

    # ---- Collectives ----
    def collective(self, mode: Any, func: Any, operator: Any, args: Any, kwargs: Any) -> Any:
        short = operator.name.split("::")[1]
        if operator.namespace == "_c10d_functional" or operator.namespace == "_dtensor":
            return self._functional(mode, func, operator, short, args, kwargs)
        group = next((ProcessGroup.unbox(a) for a in (*args, *kwargs.values()) if isinstance(a, torch.ScriptObject)
                      and "ProcessGroup" in str(a._type())), None)
        outs, ins = self._sides(short, args)
        on_gpu = any(isinstance(t, FakeTensor) for t in (*outs, *ins))
        result = args[0] if args and isinstance(args[0], (list, tuple)) else [args[0]] if args else []
        if not on_gpu and short != "barrier":
            self._on_cpu(short, args, group)
            work = DryWork(self, None, list(tensors_in(result)))
            return self._returned(func, args, work)
        schema = [a.name for a in func._schema.arguments]
        flag = next((i for i, n in enumerate(schema) if n in ("asyncOp", "async_op")), None)
        late = True if flag is None else bool(args[flag] if flag < len(args) else kwargs.get(schema[flag], True))
        peer = None
        if short in ("send", "recv_"):
            peer = args[2]
            ranks = dist.get_process_group_ranks(group)
            self.peers.add(ranks[peer])
            self.stages[group.group_name] = list(ranks)
        splits = (list(args[4]), list(args[3])) if short == "alltoall_base_" else ([], [])
        self._kinds_by(splits[1], group)
        with self.recorder.leaf(operator.name, func, args, kwargs) as leaf:
            if short in ("barrier", "monitored_barrier_"):
                leaf.sync = "stream"
            wait = self._note(leaf, _NAMES.get(short, short.rstrip("_")), ins, outs, group.group_name, group.size(), late, peer, splits)
            leaf.outputs = None
        self._carry(mode, short, outs, ins, group.size() if group is not None else 1)
        return self._returned(func, args, DryWork(self, wait if late else None, list(tensors_in(result))))

    @staticmethod
    def _returned(func: Any, args: Any, work: DryWork) -> Any:
        return (args[0], work.boxed()) if len(func._schema.returns) == 2 else work.boxed()

    @staticmethod
    def _sides(short: str, args: Any) -> Tuple[List[torch.Tensor], List[torch.Tensor]]:
        if not args:
            return [], []
        first = list(tensors_in([args[0]]))
        if short in _BOTH:
            return first, first
        if short == "send":
            return [], first
        if short.startswith("recv"):
            return first, []
        return first, list(tensors_in([args[1]])) if len(args) > 1 else []

    def _note(self, leaf: Leaf, name: str, ins: List[torch.Tensor], outs: List[torch.Tensor], group: str, size: int, late: bool,
              peer: Optional[int] = None, splits: Tuple[List[int], List[int]] = ([], [])) -> Optional[Leaf]:
        if self.recorder.step is None:
            return None
        sequence = self._sequence[group] = self._sequence.get(group, 0) + 1
        label, ranks = next(((d, r) for n, d, r in self._members() if n == group), ("", list(range(size))))
        stride = ranks[1] - ranks[0] if len(ranks) > 1 else 1
        tensor = (ins or outs or [None])[0]
        dtype = type_name(tensor.dtype) if tensor is not None else "float"
        attrs = [("collective_name", "string", name), ("dtype", "string", _DTYPES.get(dtype, dtype)),
                 ("in_msg_nelems", "uint64", sum(t.numel() for t in ins)), ("out_msg_nelems", "uint64", sum(t.numel() for t in outs)),
                 ("in_split_size", "string", str(splits[0])), ("out_split_size", "string", str(splits[1])),
                 ("global_rank_start", "uint64", ranks[0] if ranks else 0), ("global_rank_stride", "uint64", stride),
                 ("pg_name", "string", group), ("pg_desc", "string", label), ("pg_size", "uint64", size),
                 ("async", "bool", late)]
        value = self.recorder._value
        me = ranks.index(self.rank) if self.rank in ranks else 0
        tail = [(sequence, [], "Int", []), ([group, label], [[], []], "Tuple[String,String]", [[], []]),
                (me if peer is None else peer, [], "Int", [])]
        end = [(str(splits[0]), [], "String", []), (str(splits[1]), [], "String", []), (size, [], "Int", [])]
        node = Leaf(self.recorder, "record_param_comms")
        node.inputs = [value(list(ins) or list(outs)), *tail, (name, [], "String", []), *end]
        node.outputs = [value(list(outs))] if outs else []
        node.attrs = attrs
        leaf.children.append(node)
        wait = Leaf(self.recorder, "record_param_comms")
        wait.inputs = [*tail, ("wait", [], "String", []), *end]
        wait.attrs = [("collective_name", "string", "wait"), *attrs[1:]]
        return wait

    def _kinds_by(self, sizes: List[int], group: Any) -> None:
        """Ranks that send different amounts to this one do different work, for example with uneven tables."""
        if not 1 < len(set(sizes)) <= _MOST_KINDS or 0 in sizes:  # 0: to one neighbour, as in ring attention
            return
        ranks = dist.get_process_group_ranks(group)
        self.kinds = [[r for r, size in zip(ranks, sizes) if size == kind] for kind in sorted(set(sizes))]
        self.peers.update(k[0] for k in self.kinds if self.rank not in k)

    def waited(self, wait: Leaf) -> None:
        if self.recorder.step is None:
            return
        with self.recorder.leaf("c10d::work_wait", None, (), {}) as leaf:
            leaf.children.append(wait)
            leaf.outputs = None

    def _functional(self, mode: Any, func: Any, operator: Any, short: str, args: Any, kwargs: Any) -> Any:
        if not any(isinstance(t, FakeTensor) for t in tensors_in(args)):
            return self._functional_on_cpu(func, short, args, kwargs)
        with self.recorder.operator(func, operator, args, kwargs) as leaf:
            if short in ("wait_tensor",):
                out = args[0]
                known = self._waits.pop(out.untyped_storage()._cdata, None)
                if known is not None:
                    leaf.children.append(known)
                leaf.outputs = None
                return out
            out = mode.fake.dispatch(func, (), args, kwargs)
            if short.endswith("_out"):
                out = kwargs.get("out", out)
            outs, ins = list(tensors_in([out])), list(tensors_in([args[0]]))
            name = next(a for a in reversed((*args, *kwargs.values())) if isinstance(a, str))
            group = c10d._resolve_process_group(name)
            splits = (list(args[2]), list(args[1])) if short == "all_to_all_single" else ([], [])
            self._kinds_by(splits[1], group)
            wait = self._note(leaf, short.rstrip("_"), ins, outs, group.group_name, group.size(), True, splits=splits)
            self._carry(mode, short, outs, ins, group.size())
            for t in outs:
                if wait is not None:
                    self._waits[t.untyped_storage()._cdata] = wait
            leaf.outputs = out
        return out

    def _functional_on_cpu(self, func: Any, short: str, args: Any, kwargs: Any) -> Any:
        if "gather" in short and "coalesced" not in short:
            return torch.cat([args[0]] * args[1])
        if short.startswith("reduce_scatter") and "coalesced" not in short:
            return args[0].chunk(args[2])[0].clone()
        return args[0] if short == "wait_tensor" or short.endswith("_") else args[0].clone() if isinstance(args[0], torch.Tensor) else args[0]

    @staticmethod
    def _carry(mode: Any, short: str, outs: List[torch.Tensor], ins: List[torch.Tensor], size: int) -> None:
        """Small values, such as token counts: every rank is assumed to have the values of this one."""
        gathers = "gather" in short
        if len(outs) != 1 or len(ins) != 1 or not (gathers or short.startswith(("alltoall", "all_to_all"))):
            return
        real = mode.value_of(ins[0])
        if real is not None and real.numel() * (size if gathers else 1) == outs[0].numel():
            outs[0]._stepcast_value = Value(real.flatten().repeat(size if gathers else 1).view(outs[0].shape), [True])

    def _on_cpu(self, short: str, args: Any, group: Any) -> None:
        """Collectives of gloo: every rank is assumed to have the values of this one."""
        me = group.rank() if group is not None else 0
        if short in ("allgather_", "gather_"):
            for outs, source in zip(args[0], args[1]):
                for out in outs:
                    if out.shape == source.shape:
                        out.copy_(source)
        elif short == "_allgather_base_":
            args[0].copy_(torch.cat([args[1].reshape(-1)] * group.size()).view(args[0].shape))
        elif short in ("scatter_", "reduce_scatter_"):
            for out, sources in zip(args[0], args[1] or []):
                out.copy_(sources[me])
        elif short == "_reduce_scatter_base_":
            args[0].copy_(args[1].reshape(-1).chunk(group.size())[me].view(args[0].shape))
        elif short in ("alltoall_", "alltoall_base_"):
            for out, source in zip(tensors_in([args[0]]), tensors_in([args[1]])):
                if out.shape == source.shape:
                    out.copy_(source)

    # ---- Groups, for the record ----
    @staticmethod
    def _members() -> Iterator[Tuple[str, str, List[int]]]:
        """Name, description and ranks of the groups that contain this rank."""
        for group, ranks in c10d._world.pg_group_ranks.items():
            if isinstance(group, ProcessGroup):
                yield group.group_name, getattr(group, "group_desc", "") or "", sorted(ranks)

    def described(self) -> List[Dict[str, Any]]:
        out = []
        for name, label, ranks in self._members():
            everyone = len(ranks) == self.world_size
            out.append({"pg_name": name, "pg_desc": label or "default_pg",
                        "backend_config": "cuda:nccl", "ranks": [] if everyone else ranks, "group_size": len(ranks),
                        "group_count": len(c10d._world.pg_map)})
        return out

    # ---- Objects that ranks send to each other ----
    def _message(self, source: int, target: int) -> str:
        count = self._messages[source, target] = self._messages.get((source, target), 0) + 1
        return os.path.join(self.folder, f"object-{source}-{target}-{count}")

    def _ended(self, rank: int) -> bool:
        try:
            with open(os.path.join(self.folder, f"rank{rank}", "status"), encoding="utf-8") as file:
                return '"recorded"' in file.read()
        except OSError:
            return False

    def send_objects(self, objects: List[Any], dst: Any = None, group: Any = None, *_: Any, group_dst: Any = None, **__: Any) -> None:
        target = dist.get_global_rank(group, group_dst) if dst is None else dst
        self.peers.add(target)
        path = self._message(self.rank, target)
        with open(path + ".new", "wb") as file:
            pickle.dump(objects, file)
        os.replace(path + ".new", path)

    def receive_objects(self, objects: List[Any], src: Any = None, group: Any = None, *_: Any, group_src: Any = None, **__: Any) -> int:
        source = dist.get_global_rank(group, group_src) if src is None and group_src is not None else src or 0
        self.peers.add(source)
        path = self._message(source, self.rank)
        while not os.path.exists(path):
            self.tell("running", needs=source)  # launch.py starts that rank
            if self._ended(source) and not os.path.exists(path):
                raise RuntimeError(f"stepcast dryrun: rank {self.rank} waits for an object of rank {source}, which sent none")
            time.sleep(0.1)
        with open(path, "rb") as file:
            objects[:] = pickle.load(file)
        return source


_MOST_KINDS = 4  # more kinds come from data and do not describe the program
_DTYPES = {"c10::BFloat16": "BFloat16", "c10::Half": "Half", "float": "Float", "double": "Double", "long int": "Long", "int": "Int",
           "unsigned char": "Byte", "bool": "Bool", "signed char": "Char"}


def install(mode: Any, recorder: Any, job: Dict[str, Any]) -> Collectives:
    """Redirects all process groups to the fake backend, with the requested rank and world size."""
    import torch.distributed.device_mesh  # noqa: F401  holds names of its own
    from torch.testing._internal.distributed.fake_pg import FakeStore

    groups = Collectives(recorder, job)
    mode.groups = groups
    plain_init, plain_new, plain_backend = dist.init_process_group, dist.new_group, dist.get_backend
    plain_mesh = torch.distributed.device_mesh.init_device_mesh
    asked: Dict[str, str] = {"default": "nccl"}

    def init_process_group(backend: Any = None, *_: Any, pg_options: Any = None, **kwargs: Any) -> None:
        if job.get("calls", 0) > 1 and dist.is_initialized():
            return  # the function was called again
        asked["default"] = str(backend) if backend else "nccl"
        plain_init("fake", rank=groups.rank, world_size=groups.world_size, store=FakeStore(),
                   **{k: v for k, v in kwargs.items() if k in ("timeout", "group_name")})

    def new_group(ranks: Any = None, timeout: Any = None, backend: Any = None, pg_options: Any = None,
                  use_local_synchronization: bool = False, group_desc: Any = None, device_id: Any = None, **kwargs: Any) -> Any:
        out = plain_new(ranks, backend="fake", group_desc=group_desc, **kwargs)
        if isinstance(out, ProcessGroup):
            asked[out.group_name] = str(backend or asked["default"])
        return out

    def get_backend(group: Any = None) -> str:
        plain_backend(group)
        name = asked.get(getattr(group, "group_name", "default"), asked["default"])
        return name.split("cuda:")[1].split(",")[0] if "cuda:" in name else name

    def init_device_mesh(device_type: str, mesh_shape: Any, *args: Any, **kwargs: Any) -> Any:
        ranks = math.prod(mesh_shape)
        if ranks != groups.world_size and device_type == "cuda":
            raise RuntimeError(f"device mesh of {' x '.join(map(str, mesh_shape))} = {ranks} ranks, and the job has {groups.world_size}")
        return plain_mesh(device_type, mesh_shape, *args, **kwargs)

    # Modules that imported the functions by name have the original ones.
    for module in list(sys.modules.values()):
        for name, plain, own in (("init_process_group", plain_init, init_process_group), ("new_group", plain_new, new_group),
                                 ("init_device_mesh", plain_mesh, init_device_mesh)):
            if getattr(module, "__dict__", {}).get(name) is plain:
                setattr(module, name, own)
    for module in (dist, c10d):
        module.send_object_list, module.recv_object_list = groups.send_objects, groups.receive_objects
        module.broadcast_object_list = lambda *a, **k: None
        module.TCPStore = lambda *a, **k: FakeStore()
    dist.get_backend = get_backend
    if hasattr(c10d, "split_group"):
        def split_group(parent_pg: Any = None, split_ranks: Any = None, *_: Any, group_desc: Any = None, **__: Any) -> Any:
            mine = None
            for ranks in split_ranks:
                made = new_group(ranks, group_desc=group_desc)
                mine = made if groups.rank in ranks else mine
            return mine
        dist.split_group = c10d.split_group = split_group
    _replace_ddp()

    import torch.multiprocessing as mp

    def spawn(fn: Any, args: Any = (), nprocs: int = 1, join: bool = True, daemon: bool = False, start_method: str = "spawn") -> None:
        fn(groups.rank % max(nprocs, 1), *args)

    mp.spawn = spawn  # type: ignore[assignment]
    return groups


def _replace_ddp() -> None:
    from stepcast.dryrun.ddp import DistributedDataParallel

    torch.nn.parallel.DistributedDataParallel = DistributedDataParallel  # type: ignore[misc]
    torch.nn.parallel.distributed.DistributedDataParallel = DistributedDataParallel  # type: ignore[misc]
