/** How somebody labels: the scores on offer, and whether the dataset's answer is hidden. In the address, so that a
 * reload continues. */
import { compact, type RawSearch, readFlag, readText } from "#/app/search";

export const readLabelSearch = (search: RawSearch) =>
  compact({ scores: readText(search.scores), hide: readFlag(search.hide) });

export type LabelSearch = ReturnType<typeof readLabelSearch>;
