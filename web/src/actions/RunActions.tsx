/** What can be done to one run. Buttons stay where they are for those who may not, with the reason. */
import { useState } from "react";
import { isActive } from "#/api/runs";
import type { RunInfo } from "#/api/types";
import { buttonClass } from "#/design/Button";
import { Icon } from "#/design/Icon";
import { PageLink } from "#/parts/PageLink";
import { RefusableButton } from "#/parts/RefusableButton";
import { DeleteDialog } from "./DeleteDialog";
import { ResumeDialog } from "./ResumeDialog";
import { againHref, refuseChange, refuseDelete, refuseResume, refuseStop, useSession } from "./rights";
import { ShareDialog } from "./ShareDialog";
import { StopDialog } from "./StopDialog";
import { actionWords as words } from "./words";

type Props = {
  run: RunInfo;
  onDeleted: () => void;
};

type Open = "stop" | "resume" | "share" | "delete" | null;

export function RunActions({ run, onDeleted }: Props) {
  const session = useSession();
  const [open, setOpen] = useState<Open>(null);
  const close = () => setOpen(null);
  if (!session?.has_logins) return null;
  return (
    <>
      {isActive(run.status) ? (
        <RefusableButton
          small
          icon="square"
          reason={refuseStop(session, run)}
          onClick={() => setOpen("stop")}
        >
          {words.stop.button}
        </RefusableButton>
      ) : (
        <RefusableButton
          small
          icon="play"
          reason={refuseResume(session, run)}
          onClick={() => setOpen("resume")}
        >
          {words.resume.button}
        </RefusableButton>
      )}
      <AgainLink run={run} />
      <RefusableButton small icon="link" reason={refuseChange(session, run)} onClick={() => setOpen("share")}>
        {words.share.button}
      </RefusableButton>
      <RefusableButton
        small
        icon="trash"
        reason={refuseDelete(session, run)}
        onClick={() => setOpen("delete")}
      >
        {words.remove.button}
      </RefusableButton>
      {open === "stop" && <StopDialog run={run} onClose={close} />}
      {open === "resume" && <ResumeDialog run={run} raise={null} onClose={close} />}
      {open === "share" && <ShareDialog run={run} onClose={close} />}
      {open === "delete" && <DeleteDialog run={run} onClose={close} onDone={onDeleted} />}
    </>
  );
}

function AgainLink({ run }: { run: RunInfo }) {
  const href = againHref(run);
  if (href === null)
    return (
      <RefusableButton small icon="arrowRight" reason={words.again.local}>
        {words.again.button}
      </RefusableButton>
    );
  return (
    <PageLink href={href} className={buttonClass("plain", true)}>
      <Icon name="arrowRight" />
      {words.again.button}
    </PageLink>
  );
}

export function RenameButton({ run, onClick }: { run: RunInfo; onClick: () => void }) {
  const session = useSession();
  if (!session?.has_logins) return null;
  return (
    <RefusableButton look="quiet" small reason={refuseChange(session, run)} onClick={onClick}>
      {words.rename.button}
    </RefusableButton>
  );
}
