/** The first rows of a version, as text, whatever they hold. */
import { useQuery } from "@tanstack/react-query";
import {
  type DatasetInfo,
  type DatasetPreview,
  type DatasetVersion,
  datasetPreviewQuery,
} from "#/api/datasets";
import { Section } from "#/design/Section";
import { Loaded } from "#/parts/Loaded";
import styles from "./datasets.module.css";
import { text } from "./words";

export function Preview({ dataset, version }: { dataset: DatasetInfo; version: DatasetVersion }) {
  const preview = useQuery(datasetPreviewQuery(dataset.owner, dataset.name, version.sha256));
  return (
    <Section title={text.preview.title} note={preview.data && describe(preview.data, version)} flush>
      <Loaded query={preview}>{(found) => <Rows preview={found} />}</Loaded>
    </Section>
  );
}

function describe(preview: DatasetPreview, version: DatasetVersion): string {
  const shown = preview.rows.length;
  return preview.is_whole ? text.preview.whole(shown) : text.preview.of(shown, version.rows ?? null);
}

function Rows({ preview }: { preview: DatasetPreview }) {
  if (preview.problem)
    return (
      <p className={styles.bad}>
        {text.preview.bad} {preview.problem}
      </p>
    );
  if (preview.rows.length === 0) return <p className={styles.note}>{text.preview.empty}</p>;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard
    <section className={styles.scroll} aria-label={text.preview.title} tabIndex={0}>
      <table className={styles.table}>
        <thead>
          <tr>
            {preview.columns.map((column) => (
              <th key={column} scope="col">
                {column}
              </th>
            ))}
          </tr>
        </thead>
        <tbody className={styles.rows}>
          {preview.rows.map((row, index) => (
            <tr key={index}>
              {row.map((cell, column) => (
                <td key={column}>
                  {cell === null ? <span className={styles.faint}>–</span> : <Cell text={cell} />}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

const Cell = ({ text: value }: { text: string }) => (
  <span className={styles.clamp} title={value.length > 200 ? value : undefined}>
    {value}
  </span>
);
