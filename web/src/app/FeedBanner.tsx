/** Says when live updates are interrupted, and how old what you see is. Short interruptions stay unmentioned. */
import { useEffect, useRef } from "react";
import { Icon } from "#/design/Icon";
import { formatDuration } from "#/parts/format";
import { words } from "#/words";
import { announce } from "./announcer";
import { useNow } from "./clock";
import styles from "./FeedBanner.module.css";
import { feed } from "./feed";
import { useStore } from "./store";

const PATIENCE_SECONDS = 4;

export function FeedBanner() {
  const { state, since } = useStore(feed);
  const now = useNow(1);
  const age = Math.max(0, now - since);
  const isAway = (state === "away" || state === "connecting") && age >= PATIENCE_SECONDS;
  useReturnAnnouncement(isAway, state === "live");
  if (!isAway) return null;
  return (
    <p className={styles.banner}>
      <Icon name="alert" />
      {words.feed.away(words.feed.ago(formatDuration(age)))}
    </p>
  );
}

function useReturnAnnouncement(isAway: boolean, isLive: boolean): void {
  const wasAway = useRef(false);
  useEffect(() => {
    if (isAway) wasAway.current = true;
    if (!isLive || !wasAway.current) return;
    wasAway.current = false;
    announce(words.feed.back);
  }, [isAway, isLive]);
}
