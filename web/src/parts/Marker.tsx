/** A point of a chart with several series: each has a colour and a shape, so that neither is needed alone. */
import { classes } from "#/design/classes";
import styles from "./Marker.module.css";

export const SERIES = 8;
const COLOURS = 4;

type Props = { series: number; x: number; y: number; r: number; title?: string; isFaint?: boolean };

export function Marker({ series, x, y, r, title, isFaint = false }: Props) {
  const at = series % SERIES;
  const className = classes(
    styles.marker,
    styles[`colour${at % COLOURS}`],
    at >= COLOURS && styles.hollow,
    isFaint && styles.faint,
  );
  const name = title && <title>{title}</title>;
  if (at % COLOURS === 0)
    return (
      <circle className={className} cx={x} cy={y} r={r}>
        {name}
      </circle>
    );
  return (
    <path className={className} d={SHAPES[at % COLOURS]?.(x, y, r)}>
      {name}
    </path>
  );
}

const SHAPES: Record<number, (x: number, y: number, r: number) => string> = {
  1: (x, y, r) => `M${x - r * 0.9} ${y - r * 0.9}h${r * 1.8}v${r * 1.8}h${-r * 1.8}z`,
  2: (x, y, r) => `M${x} ${y - r * 1.15}L${x + r * 1.1} ${y + r * 0.8}H${x - r * 1.1}z`,
  3: (x, y, r) => `M${x} ${y - r * 1.25}L${x + r * 1.25} ${y}L${x} ${y + r * 1.25}L${x - r * 1.25} ${y}z`,
};

export const seriesClass = (series: number): string => styles[`colour${(series % SERIES) % COLOURS}`] ?? "";
