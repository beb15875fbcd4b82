/** A text of a trace: rendered or as it was written; of a very long one its head and tail, and a way to all of it. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { type RolloutAddress, wholeEventQuery } from "#/api/rollouts";
import type { CutText, EventContent } from "#/api/types";
import { Button } from "#/design/Button";
import { CopyButton } from "#/design/CopyButton";
import { Dialog } from "#/design/Dialog";
import { Ansi } from "#/parts/Ansi";
import { showControls } from "#/parts/ansiText";
import { Code } from "#/parts/Code";
import { formatCount } from "#/parts/format";
import { Loaded } from "#/parts/Loaded";
import { Markdown } from "#/parts/Markdown";
import { TextView } from "#/parts/TextView";
import { words } from "#/words";
import { indentJson } from "./json";
import styles from "./LongText.module.css";

/** How a text is drawn: prose as Markdown, output as a terminal would, or everything as it was written. */
export type TextLook = "prose" | "output" | "raw";

/** Where a text comes from, to load all of it. */
export type TextSource = {
  address: RolloutAddress;
  event: number;
  name: string;
  pick: (event: EventContent) => CutText | null | undefined;
};

const HEAD = 8_000;
const TAIL = 2_000;

export function LongText({ text, look, source }: { text: CutText; look: TextLook; source: TextSource }) {
  const [isOpen, setOpen] = useState(false);
  if (text.omitted === 0) return <Text text={text.head} look={look} />;
  const head = text.head.slice(0, HEAD);
  const tail = text.tail.slice(-TAIL);
  const all = text.head.length + text.omitted + text.tail.length;
  return (
    <div className={styles.long}>
      <Text text={head} look={look === "prose" ? "raw" : look} />
      <div className={styles.cut}>
        {words.trace.omitted(formatCount(all - head.length - tail.length))}
        <Button small onClick={() => setOpen(true)}>
          {words.trace.openAll(formatCount(all))}
        </Button>
      </div>
      <Text text={tail} look={look === "prose" ? "raw" : look} />
      {isOpen && <WholeText source={source} onClose={() => setOpen(false)} />}
    </div>
  );
}

function Text({ text, look }: { text: string; look: TextLook }) {
  if (look === "prose") return <Markdown text={text} />;
  if (look === "raw") return <pre className={styles.raw}>{showControls(text)}</pre>;
  const json = indentJson(text);
  return (
    <pre className={styles.raw}>
      {json === null ? <Ansi text={text} /> : <Code text={json} language="json" />}
    </pre>
  );
}

function WholeText({ source, onClose }: { source: TextSource; onClose: () => void }) {
  const event = useQuery(wholeEventQuery(source.address, source.event));
  return (
    <Dialog open onClose={onClose} title={source.name} wide>
      <div className={styles.whole}>
        <Loaded query={event} lines={12}>
          {(data) => {
            const text = source.pick(data)?.head ?? "";
            return <TextView text={text} wrap label={source.name} actions={<CopyButton text={text} />} />;
          }}
        </Loaded>
      </div>
    </Dialog>
  );
}
