/** The row of a rollout exactly as it is stored, to read and to download. */
import { useQuery } from "@tanstack/react-query";
import { type RolloutAddress, rawHref, rawRowQuery } from "#/api/rollouts";
import { buttonClass } from "#/design/Button";
import { CopyButton } from "#/design/CopyButton";
import { Dialog } from "#/design/Dialog";
import { Icon } from "#/design/Icon";
import { Loaded } from "#/parts/Loaded";
import { TextView } from "#/parts/TextView";
import { indentJson } from "#/trace/json";
import { words } from "#/words";
import styles from "./RawRow.module.css";

export function RawRow({ address, onClose }: { address: RolloutAddress; onClose: () => void }) {
  const row = useQuery(rawRowQuery(address));
  const file = `${address.taskKey}-${address.number}.json`;
  return (
    <Dialog open onClose={onClose} title={words.rollout.rawRow} wide>
      <div className={styles.row}>
        <Loaded query={row} lines={12}>
          {(text) => (
            <TextView
              text={indentJson(text) ?? text}
              label={words.rollout.rawRow}
              wrap
              actions={
                <>
                  <CopyButton text={text} />
                  <a className={buttonClass("plain", true)} href={rawHref(address)} download={file}>
                    <Icon name="download" /> {words.rollout.download}
                  </a>
                </>
              }
            />
          )}
        </Loaded>
      </div>
    </Dialog>
  );
}
