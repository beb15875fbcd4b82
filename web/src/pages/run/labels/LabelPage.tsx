/** Labelling, on a page of its own: a run's heading names its model, and its other parts its score. One rollout at
 * a time, scored by a key or a button, saved at once. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { useChange } from "#/api/change";
import { blindRolloutQuery, giveLabel, labellingQuery, labelsKey } from "#/api/labels";
import { sessionQuery } from "#/api/session";
import type { LabellingQueue, NewLabel, QueuedRollout } from "#/api/types";
import { announce } from "#/app/announcer";
import { useKeys } from "#/app/keys";
import { Button } from "#/design/Button";
import { PageBody, PageHeader } from "#/design/Section";
import { Skeleton } from "#/design/Skeleton";
import { TextField } from "#/design/TextField";
import { Loaded } from "#/parts/Loaded";
import { Problem } from "#/parts/Problem";
import { words } from "#/words";
import { BlindConversation } from "./BlindConversation";
import { LabellingProgress } from "./LabellingProgress";
import styles from "./labels.module.css";
import { DEFAULT_SCORES, nameScoreKey, parseScores } from "./scores";
import { labelWords } from "./words";

const route = getRouteApi("/runs/$runId/label");
const text = labelWords.label;

export function LabelPage() {
  const { runId } = route.useParams();
  const search = route.useSearch();
  const navigate = useNavigate();
  const session = useQuery(sessionQuery);
  const person = session.data?.user?.name;
  const queue = useQuery({ ...labellingQuery(runId, person), enabled: !session.isPending });
  useEffect(() => {
    document.title = `${text.title} · ${words.product}`;
  }, []);
  const scores = parseScores(search.scores ?? DEFAULT_SCORES) ?? [0, 1];
  return (
    <>
      <PageHeader title={text.title} below={<span>{text.note}</span>} />
      <PageBody>
        <Loaded query={queue} lines={8}>
          {(data) => (
            <LabelDesk
              runId={runId}
              queue={data}
              scores={scores}
              showsAnswer={!search.hide}
              onStop={() => void navigate({ to: "/runs/$runId/labels", params: { runId } })}
            />
          )}
        </Loaded>
      </PageBody>
    </>
  );
}

type DeskProps = {
  runId: string;
  queue: LabellingQueue;
  scores: readonly number[];
  showsAnswer: boolean;
  onStop: () => void;
};

/** What is labelled here is kept apart from the queue, which others' labels may refresh at any time. */
function LabelDesk({ runId, queue, scores, showsAnswer, onStop }: DeskProps) {
  const client = useQueryClient();
  const [past, setPast] = useState<readonly QueuedRollout[]>([]);
  const [returned, setReturned] = useState<QueuedRollout | null>(null);
  const [note, setNote] = useState("");
  const done = new Set(past.map(nameRollout));
  const next = returned ?? queue.items.find((item) => !done.has(nameRollout(item))) ?? null;
  const change = useChange<{ item: QueuedRollout; label: NewLabel }, unknown>({
    send: ({ label }, key) => giveLabel(runId, label, key),
    onDone: (_, { item }) => {
      announce(text.saved);
      setPast((before) => [...before.filter((each) => nameRollout(each) !== nameRollout(item)), item]);
      setReturned(null);
      setNote("");
      void client.invalidateQueries({ queryKey: labelsKey(runId) });
    },
  });
  const give = (score: number | null) => {
    if (!next) return;
    const { example_id, rollout } = next;
    change.submit({ item: next, label: { example_id, rollout, score, note: note.trim() } });
  };
  const goBack = () => {
    const last = past.at(-1);
    if (!last) return;
    setPast(past.slice(0, -1));
    setReturned(last);
  };
  useKeys([
    ...scores.map((score, index) => ({
      keys: nameScoreKey(scores, index),
      label: text.give(String(score)),
      run: () => give(score),
    })),
    { keys: "s", label: text.skip, run: () => give(null) },
    { keys: "b", label: text.back, run: goBack },
  ]);
  const isBehind = queue.items.length > 0 && queue.items.every((item) => done.has(nameRollout(item)));
  const labelled = Math.max(queue.labelled, countLabelled(queue, past));
  if (!next)
    return (
      <div className={styles.done}>
        {isBehind ? <Skeleton lines={4} /> : <p>{text.finished}</p>}
        <Button onClick={onStop}>{text.stop}</Button>
      </div>
    );
  return (
    <div className={styles.desk}>
      <div className={styles.bar}>
        <span className={styles.place}>{text.place(Math.min(labelled + 1, queue.total), queue.total)}</span>
        <LabellingProgress done={labelled} all={queue.total} />
        <Button small look="quiet" onClick={onStop}>
          {text.stop}
        </Button>
      </div>
      <Conversation runId={runId} item={next} showsAnswer={showsAnswer} />
      <Problem error={change.error} />
      <div className={styles.give}>
        {scores.map((score, index) => (
          <Button key={score} onClick={() => give(score)} aria-disabled={change.isBusy}>
            {text.give(String(score))}
            <kbd>{nameScoreKey(scores, index)}</kbd>
          </Button>
        ))}
        <Button look="quiet" onClick={() => give(null)}>
          {text.skip}
          <kbd>s</kbd>
        </Button>
        <Button look="quiet" onClick={goBack} disabled={past.length === 0}>
          {text.back}
          <kbd>b</kbd>
        </Button>
        <TextField
          label={text.comment}
          hideLabel
          placeholder={text.comment}
          maxLength={2000}
          value={note}
          onChange={(event) => setNote(event.target.value)}
          className={styles.note ?? ""}
        />
      </div>
    </div>
  );
}

function Conversation(props: { runId: string; item: QueuedRollout; showsAnswer: boolean }) {
  const { runId, item, showsAnswer } = props;
  const rollout = useQuery(blindRolloutQuery(runId, item.key, item.rollout));
  if (rollout.error) return <Problem error={rollout.error} />;
  if (!rollout.data) return <Skeleton lines={6} />;
  return <BlindConversation key={nameRollout(item)} rollout={rollout.data} showsAnswer={showsAnswer} />;
}

const nameRollout = (item: QueuedRollout): string => `${item.key}/${item.rollout}`;

/** The queue counts what the server knows; labels given since it was read are not in it yet. */
function countLabelled(queue: LabellingQueue, past: readonly QueuedRollout[]): number {
  const open = new Set(queue.items.map(nameRollout));
  return queue.labelled + past.filter((item) => open.has(nameRollout(item))).length;
}
