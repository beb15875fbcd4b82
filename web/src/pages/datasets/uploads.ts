/**
 * Files on their way to the server, in parts. They go on while other pages are looked at, wait while the server
 * does not answer, and continue where it says they stopped. Only one part of a file is in memory at a time, and
 * the server computes the hash.
 */

import { ApiError, api, isAway, read, readProblem } from "#/api/client";
import type { DatasetFormat, DatasetInfo, DatasetUploadInfo } from "#/api/datasets";
import { announce } from "#/app/announcer";
import { createStore } from "#/app/store";
import { text } from "./words";

const PART_BYTES = 4 * 2 ** 20;
const PAUSES_SECONDS = [1, 2, 4, 8, 15] as const;
const MEMORY = "proctor-uploads";

export type UploadState =
  | { kind: "sending" }
  | { kind: "waiting"; seconds: number }
  | { kind: "checking" }
  | { kind: "done"; dataset: DatasetInfo }
  | { kind: "failed"; error: Error };

export type Upload = { id: string; slug: string; sent: number; size: number; state: UploadState };

export const uploads = createStore<readonly Upload[]>([]);
const controllers = new Map<string, AbortController>();

const change = (id: string, values: Partial<Upload>) =>
  uploads.set((now) => now.map((each) => (each.id === id ? { ...each, ...values } : each)));

export const findFormat = (name: string): DatasetFormat | null => {
  const ending = name.slice(name.lastIndexOf(".") + 1).toLowerCase();
  return ending === "jsonl" || ending === "csv" || ending === "parquet" ? ending : null;
};

/** A name that the server takes, made from a file's. */
export const suggestName = (file: string): string =>
  file
    .replace(/\.[^.]*$/, "")
    .replace(/[^A-Za-z0-9._-]+/g, "-")
    .replace(/^[._-]+/, "")
    .slice(0, 100)
    .replace(/[._-]+$/, "");

const fingerprint = (file: File) => `${file.name} ${file.size} ${file.lastModified}`;

/** Which file an upload is of, so that another one cannot be appended to it. */
function remembered(): Record<string, string> {
  try {
    return JSON.parse(localStorage.getItem(MEMORY) ?? "{}") as Record<string, string>;
  } catch {
    return {};
  }
}

function remember(id: string, file: File | null): void {
  const all = remembered();
  if (file) all[id] = fingerprint(file);
  else delete all[id];
  localStorage.setItem(MEMORY, JSON.stringify(all));
}

export const isSameFile = (upload: DatasetUploadInfo, file: File): boolean =>
  file.size === upload.size && [undefined, fingerprint(file)].includes(remembered()[upload.id]);

/** Sends a file from where the server has it; returns at once. */
export function startUpload(upload: DatasetUploadInfo, file: File, onDone: () => void): void {
  if (controllers.has(upload.id)) return;
  const controller = new AbortController();
  controllers.set(upload.id, controller);
  remember(upload.id, file);
  const slug = `${upload.owner}/${upload.name}`;
  const entry: Upload = {
    id: upload.id,
    slug,
    sent: upload.received,
    size: upload.size,
    state: { kind: "sending" },
  };
  uploads.set((now) => [...now.filter((each) => each.id !== upload.id), entry]);
  announce(text.upload.started(slug));
  void send(upload, file, controller.signal)
    .then((dataset) => {
      change(upload.id, { sent: upload.size, state: { kind: "done", dataset } });
      announce(text.upload.finished(slug));
      onDone();
    })
    .catch((error: Error) => {
      if (!controller.signal.aborted) change(upload.id, { state: { kind: "failed", error } });
    })
    .finally(() => controllers.delete(upload.id));
}

export function dismissUpload(id: string): void {
  controllers.get(id)?.abort();
  uploads.set((now) => now.filter((each) => each.id !== id));
}

export async function cancelUpload(id: string): Promise<void> {
  dismissUpload(id);
  remember(id, null);
  await read(api.DELETE("/api/v1/dataset-uploads/{upload_id}", { params: { path: { upload_id: id } } }));
}

async function send(upload: DatasetUploadInfo, file: File, signal: AbortSignal): Promise<DatasetInfo> {
  let offset = upload.received;
  const key = `finish-${upload.id}`;
  for (let failures = 0; ; ) {
    try {
      if (failures > 0) offset = (await readUpload(upload.id, signal)).received;
      while (offset < file.size) {
        change(upload.id, { state: { kind: "sending" }, sent: offset });
        offset = (await sendPart(upload.id, file, offset, signal)).received;
        failures = 0;
      }
      change(upload.id, { state: { kind: "checking" }, sent: offset });
      const { dataset } = await finish(upload.id, key, signal);
      remember(upload.id, null);
      return dataset;
    } catch (error) {
      if (signal.aborted || !isWorthRetrying(error)) throw error;
      const seconds = PAUSES_SECONDS[Math.min(failures, PAUSES_SECONDS.length - 1)] ?? 1;
      failures += 1;
      change(upload.id, { state: { kind: "waiting", seconds } });
      await pause(seconds, signal);
    }
  }
}

/** Not answered, or another part is still arriving, or the server has more of it than we knew. */
const isWorthRetrying = (error: unknown): boolean =>
  isAway(error) ||
  (error instanceof ApiError && ["in_use", "wrong_offset", "upload_incomplete"].includes(error.code));

const readUpload = (id: string, signal: AbortSignal) =>
  read(api.GET("/api/v1/dataset-uploads/{upload_id}", { params: { path: { upload_id: id } }, signal }));

const finish = (id: string, key: string, signal: AbortSignal) =>
  read(
    api.POST("/api/v1/dataset-uploads/{upload_id}/finish", {
      params: { path: { upload_id: id }, header: { "Idempotency-Key": key } },
      signal,
    }),
  );

async function sendPart(
  id: string,
  file: File,
  offset: number,
  signal: AbortSignal,
): Promise<DatasetUploadInfo> {
  let response: Response;
  try {
    response = await fetch(`/api/v1/dataset-uploads/${encodeURIComponent(id)}?offset=${offset}`, {
      method: "PATCH",
      headers: { "content-type": "application/octet-stream" },
      body: file.slice(offset, offset + PART_BYTES),
      credentials: "same-origin",
      signal,
    });
  } catch (error) {
    if (signal.aborted) throw error;
    await checkReadable(file, offset);
    throw new ApiError(0, "unreachable", "The server does not answer.");
  }
  const body: unknown = await response.json().catch(() => null);
  if (!response.ok) throw readProblem(response.status, body);
  return body as DatasetUploadInfo;
}

/** A file that was changed or removed meanwhile looks like a broken connection; trying again would not help. */
async function checkReadable(file: File, offset: number): Promise<void> {
  try {
    await file.slice(offset, offset + 1).arrayBuffer();
  } catch {
    throw new Error(text.upload.unreadable);
  }
}

function pause(seconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, seconds * 1000);
    const end = () => {
      clearTimeout(timer);
      resolve();
    };
    signal.addEventListener("abort", end, { once: true });
  });
}
