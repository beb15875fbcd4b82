/** What an environment says of itself, and the facts of the version that is shown. */
import { useQuery } from "@tanstack/react-query";
import { filesQuery, slugOf, type VersionOf } from "#/api/environments";
import type { Version } from "#/api/types";
import { CodeBlock } from "#/design/CodeBlock";
import { EmptyState } from "#/design/EmptyState";
import { Facts } from "#/design/Facts";
import { PageBody, Section } from "#/design/Section";
import { When } from "#/parts/Figures";
import { formatBytes, formatCount } from "#/parts/format";
import { Loaded } from "#/parts/Loaded";
import { Markdown } from "#/parts/Markdown";
import { CheckMark } from "../environments/CheckMark";
import styles from "./environment.module.css";
import { WithVersion } from "./WithVersion";
import { text } from "./words";

const README = /^readme(\.(md|markdown|rst|txt))?$/i;
const MARKDOWN = /\.(md|markdown)$/i;

export function Readme() {
  return (
    <WithVersion>
      {(version, of) => (
        <PageBody>
          <div className={styles.columns}>
            <Section title={text.tabs.readme}>
              <ReadmeText of={of} />
            </Section>
            <About version={version} of={of} />
          </div>
        </PageBody>
      )}
    </WithVersion>
  );
}

function ReadmeText({ of }: { of: VersionOf }) {
  const folder = useQuery(filesQuery(of, ""));
  return (
    <Loaded query={folder} lines={6}>
      {({ entries }) => {
        const found = entries?.map(({ path }) => path).find((path) => README.test(path));
        return found ? <ReadmeFile of={of} path={found} /> : <NoReadme />;
      }}
    </Loaded>
  );
}

function ReadmeFile({ of, path }: { of: VersionOf; path: string }) {
  const file = useQuery(filesQuery(of, path));
  return (
    <Loaded query={file} lines={6}>
      {(read) =>
        read.text == null ? (
          <NoReadme />
        ) : (
          <div className={styles.text}>
            {MARKDOWN.test(path) ? <Markdown text={read.text} /> : <CodeBlock text={read.text} wrap />}
          </div>
        )
      }
    </Loaded>
  );
}

const NoReadme = () => (
  <EmptyState title={text.readme.none}>
    <p>{text.readme.noneHint}</p>
  </EmptyState>
);

function About({ version, of }: { version: Version; of: VersionOf }) {
  const words = text.readme;
  return (
    <Section title={words.about}>
      <div className={styles.stack}>
        <Facts
          facts={[
            { name: text.version, value: version.version },
            { name: words.check, value: <CheckMark status={version.check.status} /> },
            { name: words.tasks, value: formatCount(version.check.tasks) },
            {
              name: words.pushed,
              value: (
                <>
                  <When at={version.created_at} /> {words.by(version.pushed_by)}
                </>
              ),
            },
            version.requires_python !== "" && { name: words.python, value: version.requires_python },
            version.dependencies.length > 0 && {
              name: words.dependencies,
              value: version.dependencies.join(", "),
            },
            { name: words.size, value: formatBytes(version.source_size) },
            {
              name: words.content,
              value: <code title={version.content_hash}>{version.content_hash.slice(0, 12)}</code>,
            },
          ]}
        />
        <span className={styles.faint}>{words.install}</span>
        <CodeBlock text={`proctor env install ${slugOf(of)}@${version.version}`} wrap />
      </div>
    </Section>
  );
}
