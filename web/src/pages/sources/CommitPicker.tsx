/** Which branch, and which of its last commits; or any other one by its hash. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { type SourceCommit, type SourceInfo, sourceCommitsQuery } from "#/api/sources";
import { useNow } from "#/app/clock";
import { Select } from "#/design/Select";
import { TextField } from "#/design/TextField";
import { formatAgo } from "#/parts/format";
import styles from "./sources.module.css";
import { text } from "./words";

const OTHER = "other";
const FULL = /^[0-9a-f]{40}$/i;

type Props = {
  source: SourceInfo;
  commit: string;
  isSyncing: boolean;
  onCommit: (commit: string) => void;
  onBranch: (branch: string) => void;
};

export function CommitPicker({ source, commit, isSyncing, onCommit, onBranch }: Props) {
  const history = useQuery(sourceCommitsQuery(source.id));
  const [typed, setTyped] = useState<string | null>(null);
  const now = useNow(60);
  const commits = withChosen(history.data ?? [], source, commit);
  const branches = [...new Set([source.branch ?? "", ...(source.branches ?? [])])].filter(Boolean);
  return (
    <div className={styles.pair}>
      <Select
        label={text.submit.branch}
        hint={text.submit.branchHint}
        value={source.branch ?? ""}
        options={branches.map((value) => ({ value, label: value }))}
        onChange={onBranch}
        disabled={isSyncing}
      />
      <Select
        label={text.submit.commit}
        value={typed === null ? commit : OTHER}
        options={[
          ...commits.map((each) => ({ value: each.commit_sha, label: describe(each, now) })),
          { value: OTHER, label: text.submit.otherCommit },
        ]}
        onChange={(value) => {
          setTyped(value === OTHER ? "" : null);
          if (value !== OTHER) onCommit(value);
        }}
      />
      {typed !== null && (
        <TextField
          label={text.submit.commitHash}
          hint={text.submit.commitHint}
          value={typed}
          spellCheck={false}
          autoComplete="off"
          maxLength={40}
          onChange={(event) => {
            const value = event.target.value.trim();
            setTyped(value);
            if (!FULL.test(value)) return;
            setTyped(null);
            onCommit(value.toLowerCase());
          }}
        />
      )}
    </div>
  );
}

/** The chosen commit is listed also if it is older than the history, or on another branch. */
function withChosen(history: readonly SourceCommit[], source: SourceInfo, commit: string): SourceCommit[] {
  const newest: SourceCommit = {
    commit_sha: source.commit_sha ?? "",
    subject: source.subject ?? "",
    author: source.author ?? "",
    committed_at: source.committed_at ?? null,
  };
  const all = history.some((each) => each.commit_sha === newest.commit_sha) ? history : [newest, ...history];
  return all.some((each) => each.commit_sha === commit)
    ? [...all]
    : [{ commit_sha: commit, subject: "", author: "", committed_at: null }, ...all];
}

function describe({ commit_sha, subject, author, committed_at }: SourceCommit, now: number): string {
  const when = committed_at == null ? "" : formatAgo(committed_at, now);
  return [commit_sha.slice(0, 8), subject, author, when].filter(Boolean).join(" · ");
}
