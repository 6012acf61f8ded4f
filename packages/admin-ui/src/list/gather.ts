import { listRecords, type ListRequest } from '../api/client.ts';
import type { Target } from '../actions/action-dialog.tsx';

/** More than this is work for a command, not for a page. */
export const GATHER_MAX = 10_000;
const PAGE = 100;

/** Every record that the list would show, page by page. */
export async function gatherTargets(resource: string, query: ListRequest): Promise<Target[]> {
  const targets: Target[] = [];
  let cursor: string | null = '';
  while (cursor !== null && targets.length < GATHER_MAX) {
    const page = await listRecords(resource, { ...query, cursor, limit: PAGE });
    targets.push(...page.items.map(({ id, title }) => ({ id, title })));
    cursor = page.next;
  }
  return targets.slice(0, GATHER_MAX);
}
