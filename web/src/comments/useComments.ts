/** The comments on a run or a rollout, where there are people who comment. */
import { useQuery } from "@tanstack/react-query";
import { useSession } from "#/actions/rights";
import { type CommentPlace, commentsQuery } from "#/api/comments";
import { usePolling } from "#/app/feed";

export function useComments(place: CommentPlace) {
  const session = useSession();
  const refetchInterval = usePolling();
  return useQuery({ ...commentsQuery(place), refetchInterval, enabled: session?.has_logins ?? false });
}
