/** The keys that work here, and those that work everywhere. */
import { Dialog } from "#/design/Dialog";
import { words } from "#/words";
import styles from "./KeyHelp.module.css";
import { bindings, type KeyBinding, nameKey } from "./keys";
import { useStore } from "./store";

export function KeyHelp({ onClose }: { onClose: () => void }) {
  const [everywhere, ...here] = useStore(bindings).toSorted(byDepth);
  const local = here.flatMap((each) => each.bindings).filter((each) => !each.hidden);
  const palette = { keys: "Ctrl-K", label: words.keys.palette, run: () => {} };
  return (
    <Dialog open onClose={onClose} title={words.keys.title}>
      {local.length > 0 && <KeyList title={words.keys.here} keys={local} />}
      <KeyList title={words.keys.everywhere} keys={[palette, ...(everywhere?.bindings ?? [])]} />
    </Dialog>
  );
}

/** The shell's own keys first; effects of children run before it, so that it is registered last. */
const byDepth = (a: { bindings: readonly KeyBinding[] }, b: { bindings: readonly KeyBinding[] }) =>
  Number(b.bindings.some(({ keys }) => keys === "?")) - Number(a.bindings.some(({ keys }) => keys === "?"));

function KeyList({ title, keys }: { title: string; keys: readonly KeyBinding[] }) {
  return (
    <section className={styles.section}>
      <h3 className={styles.title}>{title}</h3>
      <dl className={styles.list}>
        {keys.map((each) => (
          <div key={each.keys} className={styles.line}>
            <dt>{each.label}</dt>
            <dd className={styles.keys}>
              {nameKey(each.keys).map((key) => (
                <kbd key={key} className={styles.key}>
                  {key}
                </kbd>
              ))}
            </dd>
          </div>
        ))}
      </dl>
    </section>
  );
}
