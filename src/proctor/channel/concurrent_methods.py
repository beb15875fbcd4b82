"""What a peer may request concurrently of a started task while its agent works: tools, commands, files.

Knows nothing of sessions or connections.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from proctor.channel.frames import INVALID_PARAMS
from proctor.channel.params import Params, RunCommandParams, convert_params
from proctor.channel.server import ChannelRefusedError
from proctor.contracts import HttpEndpoint
from proctor.env.template_rollout import TemplateRollout

Handler = Callable[[TemplateRollout, Params, bool], Awaitable[Params]]
"""The last argument: whether the peer is on this machine, on a Unix socket."""


async def use_tool(rollout: TemplateRollout, params: Params, is_local: bool) -> Params:  # noqa: ARG001
    name, arguments = params.get("name"), params.get("arguments", "")
    if not isinstance(name, str) or not isinstance(arguments, str):
        raise ChannelRefusedError(INVALID_PARAMS, "tools.call: 'name' and 'arguments' must be strings")
    if rollout.toolbox is None:
        raise ChannelRefusedError(INVALID_PARAMS, "tools.call: this environment lends no tools")
    return {"content": await rollout.toolbox.call(name, arguments)}


async def run_command(rollout: TemplateRollout, params: Params, is_local: bool) -> Params:
    toolbox = rollout.toolbox
    workspace = None if toolbox is None else toolbox.workspace
    if workspace is None:
        raise ChannelRefusedError(INVALID_PARAMS, "workspace.run: this task has no workspace")
    request = convert_params(params, RunCommandParams, "workspace.run")
    if (request.door or request.mounts) and not is_local:
        raise ChannelRefusedError(INVALID_PARAMS, "workspace.run: 'door' and 'mounts' need a Unix socket")
    ran = await workspace.run(
        request.command,
        seconds=request.seconds,
        stdin=request.stdin,
        variables=request.variables,
        endpoint=None if request.door is None else HttpEndpoint(*request.door),
        mounts=request.mounts,
    )
    return {"code": ran.code, "output": ran.output}


async def list_changes(rollout: TemplateRollout, params: Params, is_local: bool) -> Params:  # noqa: ARG001
    """The changed files of the workspace, once the agent's work there is over."""
    return {"files": await rollout.file_changes()}


CONCURRENT_METHODS: dict[str, Handler] = {
    "tools.call": use_tool,
    "workspace.run": run_command,
    "workspace.changes": list_changes,
}
