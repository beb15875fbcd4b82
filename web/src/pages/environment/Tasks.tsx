/** The tasks of a version, as its check listed them. */
import { useInfiniteQuery } from "@tanstack/react-query";
import { useState } from "react";
import { tasksQuery, type VersionOf } from "#/api/environments";
import type { TaskInfo, Version } from "#/api/types";
import { LoadError } from "#/app/PageError";
import { CodeBlock } from "#/design/CodeBlock";
import { Dialog } from "#/design/Dialog";
import { EmptyState } from "#/design/EmptyState";
import { Skeleton } from "#/design/Skeleton";
import { showControls } from "#/parts/ansiText";
import { formatCount } from "#/parts/format";
import { type Column, VirtualTable } from "#/parts/VirtualTable";
import { useEnvironment } from "./context";
import styles from "./environment.module.css";
import { LogInFirst } from "./LogInFirst";
import { WithVersion } from "./WithVersion";
import { text } from "./words";

const words = text.tasks;
const NEAR_END = 20;

type Numbered = { number: number; task: TaskInfo };

const COLUMNS: readonly Column<Numbered>[] = [
  {
    id: "number",
    title: words.number,
    width: 3.5,
    isNumber: true,
    cell: ({ number }) => formatCount(number),
  },
  {
    id: "task",
    title: words.task,
    width: 10,
    grow: 1,
    cell: ({ task }) => <code>{showControls(task.slug)}</code>,
  },
  {
    id: "content",
    title: words.content,
    width: 14,
    grow: 3,
    cell: ({ task }) => showControls(summarize(task)),
  },
];

const summarize = (task: TaskInfo): string => task.prompt || JSON.stringify(task.args ?? {});

export function Tasks() {
  const { user } = useEnvironment();
  if (user === null) return <LogInFirst />;
  return (
    <WithVersion>
      {(version, of) =>
        version.check.tasks == null ? <Unknown version={version} /> : <TaskList of={of} version={version} />
      }
    </WithVersion>
  );
}

const Unknown = ({ version }: { version: Version }) => (
  <EmptyState title={words.unknown}>
    <p>{words.unknownWhy[version.check.status]}</p>
  </EmptyState>
);

function TaskList({ of, version }: { of: VersionOf; version: Version }) {
  const list = useInfiniteQuery(tasksQuery(of));
  const [open, setOpen] = useState<TaskInfo | null>(null);
  if (list.error && !list.data) {
    if ("code" in list.error && list.error.code === "tasks_unknown") return <Unknown version={version} />;
    return <LoadError error={list.error} onRetry={() => void list.refetch()} />;
  }
  if (!list.data) return <Skeleton lines={8} />;
  const rows = list.data.pages.flatMap((page) => page.items);
  const all = version.check.tasks ?? rows.length;
  return (
    <div className={styles.full}>
      {!list.hasNextPage && rows.length < all && (
        <p className={styles.note}>{words.some(formatCount(rows.length), formatCount(all))}</p>
      )}
      <VirtualTable
        label={words.title}
        columns={COLUMNS}
        count={rows.length + (list.hasNextPage ? 1 : 0)}
        rowAt={(index) => {
          const task = rows[index];
          return task && { number: index + 1, task };
        }}
        keyOf={({ number }) => String(number)}
        onOpen={({ task }) => setOpen(task)}
        onRange={(_, last) => {
          if (list.hasNextPage && !list.isFetchingNextPage && last > rows.length - NEAR_END)
            void list.fetchNextPage();
        }}
      />
      <Dialog
        open={open !== null}
        onClose={() => setOpen(null)}
        title={open ? showControls(open.slug) : ""}
        wide
      >
        {open && <OneTask task={open} />}
      </Dialog>
    </div>
  );
}

function OneTask({ task }: { task: TaskInfo }) {
  const { slug: _, prompt, ...row } = task;
  return (
    <div className={styles.stack}>
      {prompt && <CodeBlock text={showControls(prompt)} label={words.prompt} wrap />}
      {Object.keys(row).length > 0 && (
        <CodeBlock text={showControls(JSON.stringify(row, null, 2))} label={words.row} wrap />
      )}
    </div>
  );
}
