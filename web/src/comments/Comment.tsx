/** One comment: who, when, about what, and its text as Markdown. A deleted one keeps its place. */
import { useLocation } from "@tanstack/react-router";
import { type ReactNode, useEffect, useRef, useState } from "react";
import { useChange } from "#/api/change";
import { deleteComment, editComment } from "#/api/comments";
import { runKey } from "#/api/runs";
import type { RunComment } from "#/api/types";
import { Button } from "#/design/Button";
import { classes } from "#/design/classes";
import { Icon } from "#/design/Icon";
import { ConfirmDialog } from "#/parts/ConfirmDialog";
import { When } from "#/parts/Figures";
import { Markdown } from "#/parts/Markdown";
import { PageLink } from "#/parts/PageLink";
import { CommentForm } from "./CommentForm";
import styles from "./comments.module.css";
import { commentWords as words } from "./words";

type Props = { runId: string; comment: RunComment; about?: ReactNode };

export const commentHref = (runId: string, id: string): string =>
  `/runs/${encodeURIComponent(runId)}/comments#${id}`;

export function Comment({ runId, comment, about }: Props) {
  const [isEditing, setEditing] = useState(false);
  const isNamed = useLocation({ select: (location) => location.hash === comment.id });
  const box = useRef<HTMLElement>(null);
  useEffect(() => {
    if (isNamed) box.current?.scrollIntoView({ block: "center" });
  }, [isNamed]);
  return (
    <article
      ref={box}
      id={comment.id}
      className={classes(styles.comment, isNamed && styles.named)}
      aria-label={words.by(comment.author)}
      aria-current={isNamed ? "true" : undefined}
    >
      <header className={styles.head}>
        <span className={styles.author}>{comment.author}</span>
        <When at={comment.created_at} />
        <PageLink href={commentHref(runId, comment.id)} label={words.link} className={styles.link}>
          <Icon name="link" size={14} />
        </PageLink>
        {comment.edited_at !== null && comment.deleted_at === null && <span>{words.edited}</span>}
        {about}
        {!isEditing && <CommentActions runId={runId} comment={comment} onEdit={() => setEditing(true)} />}
      </header>
      {comment.deleted_at !== null ? (
        <p className={styles.soft}>{words.deleted(comment.deleted_by ?? "")}</p>
      ) : isEditing ? (
        <EditForm runId={runId} comment={comment} onClose={() => setEditing(false)} />
      ) : (
        <Markdown text={comment.text} />
      )}
    </article>
  );
}

function CommentActions({ runId, comment, onEdit }: Props & { onEdit: () => void }) {
  const [isAsking, setAsking] = useState(false);
  const remove = useChange({
    send: () => deleteComment(runId, comment.id),
    refresh: [[...runKey(runId), "comments"]],
    onDone: () => setAsking(false),
  });
  if (!comment.may_edit && !comment.may_delete) return null;
  return (
    <span className={styles.actions}>
      {comment.may_edit && (
        <Button look="quiet" small onClick={onEdit}>
          {words.edit}
        </Button>
      )}
      {comment.may_delete && (
        <Button look="quiet" small onClick={() => setAsking(true)}>
          {words.remove}
        </Button>
      )}
      <ConfirmDialog
        open={isAsking}
        onClose={() => setAsking(false)}
        title={words.removeTitle}
        action={words.remove}
        onConfirm={() => remove.submit()}
        isBusy={remove.isBusy}
        error={remove.error}
      >
        <p>{words.removeText}</p>
      </ConfirmDialog>
    </span>
  );
}

function EditForm({ runId, comment, onClose }: Props & { onClose: () => void }) {
  const [text, setText] = useState(comment.text);
  const edit = useChange<string, RunComment>({
    send: (next) => editComment(runId, comment.id, next),
    refresh: [[...runKey(runId), "comments"]],
    onDone: onClose,
  });
  return <CommentForm text={text} onText={setText} change={edit} action={words.save} onCancel={onClose} />;
}
