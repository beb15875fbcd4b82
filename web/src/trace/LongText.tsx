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

/** A longer text is not drawn as a whole, but opens in a view of its own. */
const LONGEST_DRAWN = 50_000;

export function LongText({ text, look, source }: { text: CutText; look: TextLook; source: TextSource }) {
  const [isOpen, setOpen] = useState(false);
  if (text.omitted === 0) return <Text text={text.head} look={look} />;
  const all = text.head.length + text.omitted + text.tail.length;
  const isDrawn = all <= LONGEST_DRAWN;
  if (isDrawn && isOpen) return <AllOfText source={source} look={look} />;
  return (
    <div className={styles.long}>
      <Text text={text.head} look={isDrawn || look !== "prose" ? look : "raw"} />
      <div className={styles.cut}>
        {words.trace.omitted(formatCount(isDrawn ? all - text.head.length : text.omitted))}
        <Button small onClick={() => setOpen(true)}>
          {isDrawn ? words.trace.showAll(formatCount(all)) : words.trace.openAll(formatCount(all))}
        </Button>
      </div>
      {!isDrawn && <Text text={text.tail} look={look === "prose" ? "raw" : look} />}
      {isOpen && <WholeText source={source} onClose={() => setOpen(false)} />}
    </div>
  );
}

function AllOfText({ source, look }: { source: TextSource; look: TextLook }) {
  const event = useQuery(wholeEventQuery(source.address, source.event));
  return <Loaded query={event}>{(data) => <Text text={source.pick(data)?.head ?? ""} look={look} />}</Loaded>;
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
