/** Files on their way: those that this tab sends, and those that stopped and can be continued. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useId, useState } from "react";
import { useChange } from "#/api/change";
import { DATASETS_KEY, type DatasetUploadInfo, UPLOADS_KEY, uploadsQuery } from "#/api/datasets";
import { sessionQuery } from "#/api/session";
import { useStore } from "#/app/store";
import { Button } from "#/design/Button";
import { Hidden } from "#/design/Hidden";
import { Section } from "#/design/Section";
import { formatBytes } from "#/parts/format";
import styles from "./datasets.module.css";
import { cancelUpload, dismissUpload, isSameFile, startUpload, type Upload, uploads } from "./uploads";
import { text } from "./words";

export function Uploads() {
  const session = useQuery(sessionQuery);
  const here = useStore(uploads);
  const mayUpload = session.data?.scopes.includes("environments:write") ?? false;
  const known = useQuery({ ...uploadsQuery, enabled: mayUpload, meta: { quiet: true } });
  const stopped = (known.data ?? []).filter((each) => !here.some(({ id }) => id === each.id));
  if (here.length === 0 && stopped.length === 0) return null;
  return (
    <Section title={text.upload.list}>
      <div className={styles.uploads}>
        {here.map((upload) => (
          <SentUpload key={upload.id} upload={upload} />
        ))}
        {stopped.map((upload) => (
          <StoppedUpload key={upload.id} upload={upload} />
        ))}
      </div>
    </Section>
  );
}

function SentUpload({ upload }: { upload: Upload }) {
  const { state } = upload;
  const isOver = state.kind === "done" || state.kind === "failed";
  return (
    <div className={styles.upload}>
      <UploadName slug={upload.slug} isThere={state.kind === "done"} />
      <Bar slug={upload.slug} sent={upload.sent} size={upload.size} />
      <span className={styles.state}>{describe(upload)}</span>
      <div className={styles.acts}>
        {state.kind === "failed" && <CancelButton id={upload.id} slug={upload.slug} />}
        {isOver && state.kind !== "failed" && (
          <Button small onClick={() => dismissUpload(upload.id)}>
            {text.upload.dismiss}
            <Hidden> {upload.slug}</Hidden>
          </Button>
        )}
        {!isOver && <CancelButton id={upload.id} slug={upload.slug} />}
      </div>
    </div>
  );
}

function describe({ state, sent, size }: Upload): string {
  if (state.kind === "waiting") return text.upload.waiting(state.seconds);
  if (state.kind === "checking") return text.upload.checking;
  if (state.kind === "done") return text.upload.done;
  if (state.kind === "failed") return `${text.upload.failed}: ${state.error.message}`;
  return text.upload.sending(formatBytes(sent), formatBytes(size));
}

function StoppedUpload({ upload }: { upload: DatasetUploadInfo }) {
  const client = useQueryClient();
  const id = useId();
  const [problem, setProblem] = useState("");
  const slug = `${upload.owner}/${upload.name}`;
  const onChoose = (file: File | undefined) => {
    if (!file) return;
    if (!isSameFile(upload, file)) return setProblem(text.upload.otherFile(file.name));
    startUpload(upload, file, () => {
      void client.invalidateQueries({ queryKey: UPLOADS_KEY });
      void client.invalidateQueries({ queryKey: DATASETS_KEY });
    });
  };
  return (
    <div className={styles.upload}>
      <UploadName slug={slug} isThere={false} />
      <Bar slug={slug} sent={upload.received} size={upload.size} />
      <span className={styles.state} role={problem ? "alert" : undefined}>
        {problem ||
          `${text.upload.stopped}: ${text.upload.sending(formatBytes(upload.received), formatBytes(upload.size))}. ${text.upload.goOnHint}`}
      </span>
      <div className={styles.acts}>
        <label className={styles.chooser} htmlFor={id}>
          <Hidden>{`${text.upload.goOn}: ${slug}`}</Hidden>
          <input
            id={id}
            type="file"
            className={styles.file}
            onChange={(event) => onChoose(event.target.files?.[0])}
          />
        </label>
        <CancelButton id={upload.id} slug={slug} />
      </div>
    </div>
  );
}

function CancelButton({ id, slug }: { id: string; slug: string }) {
  const cancel = useChange({ send: () => cancelUpload(id), refresh: [UPLOADS_KEY] });
  return (
    <Button small disabled={cancel.isBusy} onClick={() => cancel.submit()}>
      {text.upload.cancel}
      <Hidden> {slug}</Hidden>
    </Button>
  );
}

const Bar = ({ slug, sent, size }: { slug: string; sent: number; size: number }) => (
  <progress value={sent} max={size} aria-label={text.upload.progress(slug)} />
);

function UploadName({ slug, isThere }: { slug: string; isThere: boolean }) {
  const [owner = "", name = ""] = slug.split("/");
  return isThere ? (
    <Link to="/datasets/$owner/$name" params={{ owner, name }} className={styles.link}>
      {slug}
    </Link>
  ) : (
    <span className={styles.link}>{slug}</span>
  );
}
