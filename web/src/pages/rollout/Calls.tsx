/** The model calls of a rollout in figures; each leads to its step. */
import { isWhole } from "#/api/rollouts";
import type { EventBrief, RolloutView } from "#/api/types";
import { Icon } from "#/design/Icon";
import { showControls } from "#/parts/ansiText";
import { formatCompact, formatDuration, formatMoney } from "#/parts/format";
import { words } from "#/words";
import styles from "./Calls.module.css";
import { Part } from "./Details";

const MOST = 100;

type Props = { view: RolloutView; onStep: (index: number) => void };

export function Calls({ view, onStep }: Props) {
  const calling = view.events.filter((event) => event.call !== null);
  const text = words.rollout.details;
  if (calling.length === 0 || !isWhole(view)) return null;
  const hasCost = calling.some((event) => event.call?.cost_usd !== null);
  return (
    <Part title={text.calls} note={text.callsNote(calling.length)}>
      <table className={styles.table}>
        <thead>
          <tr>
            <th scope="col">{text.call}</th>
            <th scope="col">{text.tokens}</th>
            <th scope="col">{text.time}</th>
            {hasCost && <th scope="col">{text.cost}</th>}
          </tr>
        </thead>
        <tbody>
          {calling.slice(0, MOST).map((event) => (
            <CallRow key={event.index} event={event} hasCost={hasCost} onStep={onStep} />
          ))}
        </tbody>
      </table>
      {calling.length > MOST && <p className={styles.more}>{text.moreCalls(calling.length - MOST)}</p>}
    </Part>
  );
}

function CallRow({
  event,
  hasCost,
  onStep,
}: { event: EventBrief; hasCost: boolean } & Pick<Props, "onStep">) {
  const { call } = event;
  if (!call) return null;
  const { input_tokens = 0, output_tokens = 0 } = call.usage;
  return (
    <tr>
      <th scope="row">
        <button type="button" className={styles.step} onClick={() => onStep(event.index)}>
          {call.error && <Icon name="xCircle" size={12} />}#{event.index} {showControls(call.role)}
        </button>
      </th>
      <td>
        {formatCompact(input_tokens)} → {formatCompact(output_tokens)}
      </td>
      <td>{formatDuration(call.seconds)}</td>
      {hasCost && <td>{formatMoney(call.cost_usd)}</td>}
    </tr>
  );
}
