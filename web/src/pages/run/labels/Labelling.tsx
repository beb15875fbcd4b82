/** Where labelling starts: the scores on offer, how far this person is, and who may not. */
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import type { SessionInfo } from "#/api/session";
import type { LabellingQueue, RunInfo } from "#/api/types";
import { Checkbox } from "#/design/Checkbox";
import { CodeBlock } from "#/design/CodeBlock";
import { Section } from "#/design/Section";
import { TextField } from "#/design/TextField";
import { RefusableButton } from "#/parts/RefusableButton";
import { quoteWord } from "../settings";
import { LabellingProgress } from "./LabellingProgress";
import styles from "./labels.module.css";
import { findRefusal } from "./rights";
import { DEFAULT_SCORES, parseScores } from "./scores";
import { labelWords } from "./words";

const text = labelWords.label;

type Props = { run: RunInfo; session: SessionInfo | null; queue: LabellingQueue };

export function Labelling({ run, session, queue }: Props) {
  const navigate = useNavigate();
  const [typed, setTyped] = useState(DEFAULT_SCORES);
  const [showsAnswer, setShowsAnswer] = useState(true);
  const isValid = parseScores(typed) !== null;
  if (session && !session.has_logins) return <InTerminal run={run} />;
  const start = () => {
    const search = {
      ...(typed === DEFAULT_SCORES ? {} : { scores: typed }),
      ...(showsAnswer ? {} : { hide: true as const }),
    };
    if (isValid) void navigate({ to: "/runs/$runId/label", params: { runId: run.id }, search });
  };
  return (
    <Section title={text.title} note={text.note}>
      {queue.total === 0 ? (
        <p>{text.nothing}</p>
      ) : (
        <div className={styles.start}>
          <TextField
            label={text.scores}
            hint={text.scoresHint}
            value={typed}
            onChange={(event) => setTyped(event.target.value)}
            error={isValid ? undefined : text.scoresInvalid}
            className={styles.scores ?? ""}
          />
          <Checkbox checked={showsAnswer} onChange={setShowsAnswer}>
            {text.showAnswer}
          </Checkbox>
          <div className={styles.progress}>
            <span>{text.progress(queue.labelled, queue.total)}</span>
            <LabellingProgress done={queue.labelled} all={queue.total} />
          </div>
          <RefusableButton look="primary" reason={findRefusal(run, session)} onClick={start}>
            {queue.labelled > 0 ? text.goOn : text.start}
          </RefusableButton>
        </div>
      )}
    </Section>
  );
}

function InTerminal({ run }: { run: RunInfo }) {
  return (
    <Section title={text.title} note={text.note}>
      <p className={styles.faint}>{text.local}</p>
      <CodeBlock text={`proctor eval label ${quoteWord(run.id)}`} />
    </Section>
  );
}
