/** Why a run did not simply finish, and what to do next; or why it waits. */
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { NextStep, NextStepDialog, type OpenStep } from "#/actions/NextStep";
import type { RunInfo } from "#/api/types";
import { Icon } from "#/design/Icon";
import { Commands } from "#/parts/Commands";
import { readCause, words } from "#/words";
import styles from "./CauseNotice.module.css";

export function CauseNotice({ run }: { run: RunInfo }) {
  const [open, setOpen] = useState<OpenStep | null>(null);
  return (
    <>
      <Notice run={run} onOpen={setOpen} />
      {open && <NextStepDialog run={run} open={open} onClose={() => setOpen(null)} />}
    </>
  );
}

function Notice({ run, onOpen }: { run: RunInfo; onOpen: (what: OpenStep) => void }) {
  if (run.cause) {
    const { title, message } = readCause(run.cause);
    return (
      <section
        className={run.cause.code === "stopped_by_user" ? styles.notice : styles.bad}
        aria-label={words.run.cause}
      >
        <Icon name="alert" />
        <div className={styles.text}>
          <h2>{title}</h2>
          <p className={styles.message}>{message}</p>
          {run.cause.next_step && (
            <p>
              <strong>{words.run.nextStep}</strong> <Commands text={run.cause.next_step} />
            </p>
          )}
          <NextStep run={run} cause={run.cause} onOpen={onOpen} />
        </div>
      </section>
    );
  }
  if (run.status !== "pending") return null;
  return (
    <section className={styles.notice} aria-label={words.status.pending}>
      <Icon name="clock" />
      <div className={styles.text}>
        <h2>{words.status.pending}</h2>
        <p>{run.waiting_because || words.run.queue(run.queue_place ?? 0)}</p>
        <Link to="/runs" search={{ status: ["pending", "running"] }}>
          {words.run.seeQueue}
        </Link>
      </div>
    </section>
  );
}
