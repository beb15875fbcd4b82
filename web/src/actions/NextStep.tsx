/** What to do about a run that did not simply finish: a button for each cause, or a sentence where none helps. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { balanceQuery } from "#/api/account";
import type { Cause, RunInfo } from "#/api/types";
import { Button, buttonClass } from "#/design/Button";
import { CopyButton } from "#/design/CopyButton";
import { Dialog } from "#/design/Dialog";
import { PageLink } from "#/parts/PageLink";
import { RefusableButton } from "#/parts/RefusableButton";
import styles from "./actions.module.css";
import { type RaisedLimit, ResumeDialog } from "./ResumeDialog";
import { againHref, refuseResume, useSession } from "./rights";
import { actionWords } from "./words";

const words = actionWords.next;

type Step =
  | { kind: "resume"; label: string; raise: RaisedLimit }
  | { kind: "again"; label: string }
  | { kind: "secret"; label: string }
  | { kind: "log"; label: string }
  | { kind: "message"; label: string; about: "funds" | "failure" };

const resume = (label: string, raise: RaisedLimit = null): Step => ({ kind: "resume", label, raise });
const again = (label: string): Step => ({ kind: "again", label });
const OPEN_LOG: Step = { kind: "log", label: words.log };

/** The first is what helps most often. */
export const STEPS: Record<Cause["code"], readonly [Step, ...Step[]]> = {
  environment_error: [again(words.newVersion), OPEN_LOG],
  install_failed: [OPEN_LOG, again(words.newVersion)],
  missing_permission: [again(words.grant)],
  missing_secret: [{ kind: "secret", label: words.secret }, resume(words.resume)],
  time_limit: [resume(words.raiseTime, "time")],
  balance: [{ kind: "message", label: words.ask, about: "funds" }, resume(words.resumeFunded)],
  budget: [resume(words.raiseBudget, "budget")],
  provider: [resume(words.tryAgain), again(words.otherModel)],
  crashed: [resume(words.tryAgain), OPEN_LOG],
  limit_exceeded: [resume(words.resume), OPEN_LOG],
  stopped_by_user: [resume(words.resume)],
  internal: [resume(words.tryAgain), { kind: "message", label: words.tell, about: "failure" }],
};

export type OpenStep =
  | { step: "resume"; raise: RaisedLimit }
  | { step: "message"; about: "funds" | "failure"; cause: Cause };

type Props = { run: RunInfo; cause: Cause; onOpen: (what: OpenStep) => void };

export function NextStep({ run, cause, onOpen }: Props) {
  const session = useSession();
  if (!session?.has_logins || run.ended_at === null) return null;
  if (run.kind !== "hosted") return <p>{words.local}</p>;
  return (
    <div className={styles.next} role="group" aria-label={words.label}>
      {STEPS[cause.code].map((step, index) => (
        <StepControl
          key={step.label}
          run={run}
          cause={cause}
          step={step}
          isFirst={index === 0}
          refusal={refuseResume(session, run)}
          onOpen={onOpen}
        />
      ))}
    </div>
  );
}

type DialogProps = { run: RunInfo; open: OpenStep; onClose: () => void };

/** Stays open when the cause is gone, as when somebody else resumes the run, to say so. */
export function NextStepDialog({ run, open, onClose }: DialogProps) {
  if (open.step === "resume") return <ResumeDialog run={run} raise={open.raise} onClose={onClose} />;
  return <MessageDialog run={run} cause={open.cause} about={open.about} onClose={onClose} />;
}

type ControlProps = Props & {
  step: Step;
  isFirst: boolean;
  /** Why the run cannot be resumed by this person. */
  refusal: string | null;
};

function StepControl({ run, cause, step, isFirst, refusal, onOpen }: ControlProps) {
  const look = isFirst ? "primary" : "plain";
  if (step.kind === "resume")
    return (
      <RefusableButton
        look={look}
        small
        reason={refusal}
        onClick={() => onOpen({ step: "resume", raise: step.raise })}
      >
        {step.label}
      </RefusableButton>
    );
  if (step.kind === "log")
    return (
      <Link to="/runs/$runId/logs" params={{ runId: run.id }} className={buttonClass(look, true)}>
        {step.label}
      </Link>
    );
  if (step.kind === "message")
    return (
      <Button look={look} small onClick={() => onOpen({ step: "message", about: step.about, cause })}>
        {step.label}
      </Button>
    );
  const href = step.kind === "again" ? againHref(run) : secretsHref(run);
  return (
    <PageLink href={href ?? "/runs"} className={buttonClass(look, true)}>
      {step.label}
    </PageLink>
  );
}

const secretsHref = (run: RunInfo): string =>
  `/e/${run.environment.split("/").map(encodeURIComponent).join("/")}/secrets`;

type MessageProps = { run: RunInfo; cause: Cause; about: "funds" | "failure"; onClose: () => void };

/** Whom to ask, with the words to send them. */
function MessageDialog({ run, cause, about, onClose }: MessageProps) {
  const payer = run.team ?? run.owner;
  const balance = useQuery({ ...balanceQuery(payer), enabled: about === "funds", meta: { quiet: true } });
  const address = `${location.origin}/runs/${run.id}`;
  const text =
    about === "funds"
      ? words.askText(payer, run.id, address)
      : words.tellText(run.id, cause.message, address);
  return (
    <Dialog open onClose={onClose} title={about === "funds" ? words.askTitle : words.tellTitle}>
      <div className={styles.form}>
        <p>{about === "funds" ? words.askWho(payer, balance.data?.granted_by ?? []) : words.tellWho}</p>
        <pre className={styles.text}>{text}</pre>
        <div className={styles.buttons}>
          <CopyButton text={text} label={words.copy} />
        </div>
      </div>
    </Dialog>
  );
}
