/** Which version runs, and whether its check found it fit. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { runnableQuery, versionListQuery } from "#/api/startRun";
import type { EnvironmentInfo, EnvironmentVersion } from "#/api/types";
import { Badge } from "#/design/Badge";
import { Facts } from "#/design/Facts";
import { Section } from "#/design/Section";
import { Select } from "#/design/Select";
import { When } from "#/parts/Figures";
import { formatCount } from "#/parts/format";
import type { Wizard } from "./useWizard";
import styles from "./Wizard.module.css";
import { text } from "./words";

const say = text.environment;

export function EnvironmentStep({ wizard }: { wizard: Wizard }) {
  const info = useQuery(runnableQuery(wizard.environment));
  const versions = useQuery(versionListQuery(wizard.environment));
  const known = versions.data?.items ?? [];
  const newest = info.data?.latest;
  const chosen = wizard.choices.version;
  const shown = known.find((each) => each.version === (chosen ?? newest?.version));
  const options = [
    { value: "", label: newest ? say.latest(newest.version) : "–" },
    ...known.map((each) => ({ value: each.version, label: each.version })),
    ...(chosen && known.length > 0 && !known.some((each) => each.version === chosen)
      ? [{ value: chosen, label: chosen }]
      : []),
  ];
  const problem = wizard.server.problems.environment;
  return (
    <Section title={wizard.environment} actions={<Link to="/run">{say.change}</Link>}>
      <div className={styles.fields}>
        <Select
          label={say.version}
          value={chosen ?? ""}
          options={options}
          hint={say.versionHint}
          error={problem}
          onChange={(version) => wizard.change({ version })}
        />
        {shown && <VersionFacts version={shown} info={info.data} />}
      </div>
    </Section>
  );
}

function VersionFacts({ version, info }: { version: EnvironmentVersion; info: EnvironmentInfo | undefined }) {
  const { check } = version;
  const isUnfit = check.status === "failed";
  return (
    <div className={styles.stack}>
      <Facts
        facts={[
          info?.description ? { name: say.description, value: info.description } : null,
          {
            name: say.check,
            value: (
              <Badge tone={isUnfit ? "bad" : check.status === "passed" ? "good" : "neutral"}>
                {say.checks[check.status] ?? check.status}
              </Badge>
            ),
          },
          { name: say.tasks, value: check.tasks === null ? say.tasksUnknown : formatCount(check.tasks) },
          version.secrets.length > 0 && { name: say.needs, value: version.secrets.join(", ") },
          {
            name: say.pushed,
            value: (
              <>
                {version.pushed_by}, <When at={version.created_at} />
              </>
            ),
          },
        ]}
      />
      {isUnfit && <p className={styles.warning}>{say.unfit}</p>}
    </div>
  );
}
