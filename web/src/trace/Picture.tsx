/** An image of a message: shown if it is small, on request if it is large, named only if it is on another host. */
import { useState } from "react";
import { imageHref, type RolloutAddress } from "#/api/rollouts";
import type { ImagePart } from "#/api/types";
import { Button } from "#/design/Button";
import { Icon } from "#/design/Icon";
import { showControls } from "#/parts/ansiText";
import { formatBytes } from "#/parts/format";
import { words } from "#/words";
import styles from "./Picture.module.css";

const LARGE = 1_000_000;
/** What browsers show as pictures and nothing else: an SVG is a document. */
const SHOWN = /^image\/(png|jpeg|gif|webp|avif|bmp)$/;

type Props = { address: RolloutAddress; event: number; image: ImagePart };

export function Picture({ address, event, image }: Props) {
  const [isWanted, setWanted] = useState(image.size <= LARGE);
  const [isBroken, setBroken] = useState(!SHOWN.test(image.media_type));
  const kind = `${showControls(image.media_type) || words.image.unknown}, ${formatBytes(image.size)}`;
  if (image.url)
    return (
      <p className={styles.note}>
        <Icon name="external" size={12} /> {words.image.foreign}: {showControls(image.url)}
      </p>
    );
  if (isBroken) return <p className={styles.note}>{words.image.unreadable(kind)}</p>;
  if (!isWanted)
    return (
      <Button small className={styles.show} onClick={() => setWanted(true)}>
        {words.image.show(kind)}
      </Button>
    );
  return (
    <img
      className={styles.image}
      src={imageHref(address, event, image.part)}
      alt={words.image.of(kind)}
      loading="lazy"
      decoding="async"
      onError={() => setBroken(true)}
    />
  );
}
