/** The files that a rollout created, changed or deleted; each opens as a diff. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { changedFileQuery, type RolloutAddress } from "#/api/rollouts";
import type { FileBrief } from "#/api/types";
import { CopyButton } from "#/design/CopyButton";
import { Dialog } from "#/design/Dialog";
import { showControls } from "#/parts/ansiText";
import { formatBytes } from "#/parts/format";
import { Loaded } from "#/parts/Loaded";
import { words } from "#/words";
import styles from "./ChangedFiles.module.css";
import { Part } from "./Details";
import { FileDiff } from "./FileDiff";

const MOST = 200;

export function ChangedFiles({ address, files }: { address: RolloutAddress; files: readonly FileBrief[] }) {
  const [open, setOpen] = useState<FileBrief | null>(null);
  if (files.length === 0) return null;
  return (
    <Part title={words.rollout.details.files}>
      <ul className={styles.files}>
        {files.slice(0, MOST).map((file) => (
          <li key={file.index} className={styles.file}>
            <button type="button" className={styles.path} onClick={() => setOpen(file)}>
              {showControls(file.path)}
            </button>
            <span className={styles.note}>
              {words.rollout.details.fileChanges[file.change] ?? showControls(file.change)},{" "}
              {formatBytes(file.size)}
            </span>
            {file.note && <span className={styles.note}>{showControls(file.note)}</span>}
          </li>
        ))}
      </ul>
      {open && <FileDialog address={address} file={open} onClose={() => setOpen(null)} />}
    </Part>
  );
}

type DialogProps = { address: RolloutAddress; file: FileBrief; onClose: () => void };

function FileDialog({ address, file, onClose }: DialogProps) {
  const change = useQuery(changedFileQuery(address, file.index));
  return (
    <Dialog open onClose={onClose} title={showControls(file.path)} wide>
      <div className={styles.diff}>
        <Loaded query={change} lines={12}>
          {({ diff = "", note = "", sha256 = "" }) =>
            diff ? (
              <FileDiff
                diff={diff}
                label={showControls(file.path)}
                actions={<CopyButton text={diff} label={words.copy} />}
              />
            ) : (
              <>
                <p>{showControls(note) || words.rollout.details.noDiff}</p>
                {sha256 && <code>{showControls(sha256)}</code>}
              </>
            )
          }
        </Loaded>
      </div>
    </Dialog>
  );
}
