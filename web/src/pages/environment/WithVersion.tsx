/** The version that is shown, with what its check learned; or why there is none. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { ApiError } from "#/api/client";
import { slugOf, type VersionOf, versionQuery } from "#/api/environments";
import type { Version } from "#/api/types";
import { usePolling } from "#/app/feed";
import { buttonClass } from "#/design/Button";
import { EmptyState } from "#/design/EmptyState";
import { Loaded } from "#/parts/Loaded";
import { useEnvironment, versionOf } from "./context";
import { text } from "./words";

export function WithVersion({ children }: { children: (version: Version, of: VersionOf) => ReactNode }) {
  const { slug, version } = useEnvironment();
  if (version === null)
    return (
      <EmptyState icon="box" title={text.noVersions} commands={[`proctor env push ${slug.name}`]}>
        <p>{text.noVersionsHint}</p>
      </EmptyState>
    );
  return <LoadedVersion of={versionOf(slug, version)}>{children}</LoadedVersion>;
}

function LoadedVersion(props: { of: VersionOf; children: (version: Version, of: VersionOf) => ReactNode }) {
  const refetchInterval = usePolling();
  const query = useQuery({ ...versionQuery(props.of), refetchInterval });
  if (!query.data && query.error instanceof ApiError && query.error.status === 404)
    return (
      <EmptyState
        icon="help"
        title={text.noVersion(`${slugOf(props.of)}@${props.of.version}`)}
        action={
          <Link
            to="/e/$owner/$name/versions"
            params={{ owner: props.of.owner, name: props.of.name }}
            className={buttonClass("plain")}
          >
            {text.versionsLink}
          </Link>
        }
      >
        <p>{text.noVersionHint}</p>
      </EmptyState>
    );
  return (
    <Loaded query={query} lines={6}>
      {(version) => props.children(version, props.of)}
    </Loaded>
  );
}
