/** The name of an environment, what it is in a line, and what can be done with it. */
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams } from "@tanstack/react-router";
import { slugOf, versionsQuery } from "#/api/environments";
import { Badge } from "#/design/Badge";
import { buttonClass } from "#/design/Button";
import { Icon } from "#/design/Icon";
import { PageHeader } from "#/design/Section";
import { Select } from "#/design/Select";
import { EnvironmentLink } from "#/parts/EnvironmentLink";
import { When } from "#/parts/Figures";
import { RefusableButton } from "#/parts/RefusableButton";
import { CheckBadge } from "../environments/CheckMark";
import { useEnvironment } from "./context";
import styles from "./environment.module.css";
import { ForkButton } from "./ForkButton";
import { explainRun } from "./rights";
import { text } from "./words";

export function EnvironmentHeader({ pinned }: { pinned: string | null }) {
  const shown = useEnvironment();
  const { environment, slug } = shown;
  return (
    <PageHeader
      above={<Link to="/environments">{text.back}</Link>}
      title={
        <>
          {slugOf(slug)}
          <Badge tone="neutral">{text.visibility[environment.visibility]}</Badge>
          <ShownCheck />
        </>
      }
      below={
        <>
          {environment.description && <span className={styles.description}>{environment.description}</span>}
          {environment.tags.map((tag) => (
            <Link key={tag} to="/environments" search={{ tag: [tag] }} className={styles.tag}>
              {tag}
            </Link>
          ))}
          {environment.role && <span>{text.yourRole(environment.role)}</span>}
          {environment.forked_from && <ForkedFrom origin={environment.forked_from} />}
          <When at={environment.updated_at} />
        </>
      }
      actions={
        <>
          <VersionSelect pinned={pinned} />
          <ForkButton />
          <RunButton />
        </>
      }
    />
  );
}

/** Of the version that is shown, as the list of versions has it, which the feed keeps new. */
function ShownCheck() {
  const { environment, slug, version } = useEnvironment();
  const versions = useQuery(versionsQuery(slug));
  const found = versions.data?.items.find((each) => each.version === version) ?? null;
  const shown = found ?? (environment.latest?.version === version ? environment.latest : null);
  return shown && <CheckBadge status={shown.check.status} />;
}

function ForkedFrom({ origin }: { origin: string }) {
  const [slug = "", version] = origin.split("@");
  return (
    <span>
      {text.forkedFrom} <EnvironmentLink environment={slug} version={version ?? null} />
    </span>
  );
}

function VersionSelect({ pinned }: { pinned: string | null }) {
  const { environment, slug } = useEnvironment();
  const versions = useQuery(versionsQuery(slug));
  const navigate = useNavigate();
  const params = useParams({ strict: false });
  const latest = environment.latest?.version;
  if (!latest) return null;
  const numbers = new Set([
    ...(pinned ? [pinned] : []),
    ...(versions.data?.items ?? []).map((v) => v.version),
  ]);
  return (
    <Select
      label={text.version}
      hideLabel
      value={pinned ?? ""}
      options={[
        { value: "", label: text.latest(latest) },
        ...[...numbers].map((number) => ({ value: number, label: number })),
      ]}
      onChange={(version) =>
        void navigate({
          to: ".",
          params: { ...params, name: version ? `${slug.name}@${version}` : slug.name },
        })
      }
    />
  );
}

function RunButton() {
  const shown = useEnvironment();
  const navigate = useNavigate();
  const reason = explainRun(shown);
  const href = `/e/${encodeURIComponent(shown.slug.owner)}/${encodeURIComponent(shown.slug.name)}/run`;
  if (reason !== null)
    return (
      <RefusableButton look="primary" icon="play" reason={reason}>
        {text.run}
      </RefusableButton>
    );
  return (
    <a
      href={href}
      className={buttonClass("primary")}
      onClick={(event) => {
        if (event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
        event.preventDefault();
        void navigate({ href });
      }}
    >
      <Icon name="play" />
      {text.run}
    </a>
  );
}
