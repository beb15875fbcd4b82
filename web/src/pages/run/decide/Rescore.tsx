/** Another rubric for the same answers: the commands that score again, and the re-scores that were pushed. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { rescoresQuery } from "#/api/decisions";
import { sessionQuery } from "#/api/session";
import type { RunInfo } from "#/api/types";
import { CodeBlock } from "#/design/CodeBlock";
import { Section } from "#/design/Section";
import { NumberTable } from "#/parts/Chart";
import { When } from "#/parts/Figures";
import { formatRange, formatScore } from "#/parts/format";
import { Loaded } from "#/parts/Loaded";
import { quoteWord } from "../settings";
import styles from "./decide.module.css";
import { decideWords } from "./words";

const text = decideWords.rescore;

export function Rescore({ run }: { run: RunInfo }) {
  const session = useQuery(sessionQuery);
  const again = useQuery(rescoresQuery(run));
  const commands = session.data?.has_logins ? listServerCommands(run) : [listLocalCommand(run)];
  return (
    <Section title={text.title} note={text.note}>
      <div className={styles.answer}>
        {run.rescored_from && <Source run={run} source={run.rescored_from} />}
        <p className={styles.faint}>{text.why}</p>
        <CodeBlock text={commands.join("\n")} label={text.command} />
        <Loaded query={again} lines={2}>
          {(runs) =>
            runs.length === 0 ? <p className={styles.faint}>{text.none}</p> : <Again run={run} runs={runs} />
          }
        </Loaded>
      </div>
    </Section>
  );
}

function Source({ run, source }: { run: RunInfo; source: string }) {
  return (
    <p>
      {text.of}{" "}
      <Link to="/compare" search={{ runs: `${source},${run.id}` }}>
        {text.source}
      </Link>
    </p>
  );
}

function Again({ run, runs }: { run: RunInfo; runs: readonly RunInfo[] }) {
  const { history } = decideWords;
  const rows = runs.map((each) => [
    <Link key="run" to="/runs/$runId" params={{ runId: each.id }}>
      {each.name || each.id}
    </Link>,
    <When key="when" at={each.created_at} />,
    formatScore(each.score?.mean),
    each.score?.interval ? formatRange(each.score.interval.low, each.score.interval.high) : "–",
    <Link key="moved" to="/compare" search={{ runs: `${run.id},${each.id}`, only: "differences" }}>
      {text.moved}
    </Link>,
  ]);
  const head = [history.run, history.started, history.score, history.interval, ""];
  return <NumberTable label={text.results} table={{ head, rows }} />;
}

const listLocalCommand = (run: RunInfo): string => `proctor eval rescore ${quoteWord(run.id)}`;

const listServerCommands = (run: RunInfo): string[] => [
  `proctor eval export ${run.id} --folder ${run.id}`,
  `proctor eval rescore ./${run.id} --env ${quoteWord(run.environment)}`,
  "proctor eval push latest",
];
