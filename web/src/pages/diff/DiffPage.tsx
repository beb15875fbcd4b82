/** Two rollouts side by side, step by step, with the first place marked where they part. */
import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { useEffect } from "react";
import { diffQuery, type RolloutAddress, readAddress } from "#/api/rollouts";
import type { RolloutDiff } from "#/api/types";
import { LoadError } from "#/app/PageError";
import { EmptyState } from "#/design/EmptyState";
import { FullPage } from "#/design/Section";
import { Skeleton } from "#/design/Skeleton";
import { words } from "#/words";
import { DiffHeader } from "./DiffHeader";
import { Pairs } from "./Pairs";
import { usePairs } from "./usePairs";

const route = getRouteApi("/diff");

export type Sides = { a: RolloutAddress; b: RolloutAddress };

export function DiffPage() {
  const { a = "", b = "" } = route.useSearch();
  const sides = { a: readAddress(a), b: readAddress(b) };
  useEffect(() => {
    document.title = `${words.diff.title} · ${words.product}`;
  }, []);
  if (!sides.a || !sides.b)
    return (
      <EmptyState icon="compare" title={words.diff.missing}>
        <p>{words.diff.missingHint}</p>
      </EmptyState>
    );
  return <LoadedDiff key={`${a} ${b}`} a={a} b={b} sides={{ a: sides.a, b: sides.b }} />;
}

function LoadedDiff({ a, b, sides }: { a: string; b: string; sides: Sides }) {
  const diff = useQuery(diffQuery(a, b));
  if (diff.error && !diff.data) return <LoadError error={diff.error} onRetry={() => void diff.refetch()} />;
  if (!diff.data) return <Skeleton lines={8} />;
  return <Diff diff={diff.data} sides={sides} />;
}

function Diff({ diff, sides }: { diff: RolloutDiff; sides: Sides }) {
  const pairs = usePairs(diff);
  return (
    <FullPage>
      <DiffHeader diff={diff} sides={sides} pairs={pairs} />
      <Pairs diff={diff} sides={sides} pairs={pairs} />
    </FullPage>
  );
}
