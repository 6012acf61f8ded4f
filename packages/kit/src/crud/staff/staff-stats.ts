import type { App } from '../../app/declare/module.ts';
import type { Where } from '../../db/sql/where/where.ts';
import type { Item } from '../declare/item.ts';
import { type AnyResource, STAFF } from '../declare/resource.ts';
import type { StatsOptions } from '../options/stats-options.ts';
import { Stats } from '../read/stats.ts';
import { asCaller, type CallerInTransaction, operationsOf } from '../serve/crud-of.ts';
import { mountedResourceOf } from '../serve/controller.ts';

/** What the statistics of a resource are, as the first of its controllers that has some declares them. */
export function declaredStats(app: App, resource: AnyResource): StatsOptions | undefined {
  return app.controllers
    .map((controller) => mountedResourceOf(controller))
    .find((mounted) => mounted?.resource === resource && mounted.options.stats !== undefined)?.options.stats;
}

/** One question for the statistics. */
export interface StaffStats {
  /** Names of groups: `status`, `created_at__day`. None: a single row. */
  readonly groupBy: readonly string[];
  readonly metrics: readonly string[];
  readonly within: Where;
}

/** The statistics of the rows that a member of staff sees. */
export function staffStats(
  app: App,
  resource: AnyResource,
  caller: CallerInTransaction,
  stats: StatsOptions,
  asked: StaffStats,
): Promise<readonly Item[]> {
  const { access } = operationsOf(app, resource, STAFF);
  return asCaller(app, caller, STAFF)('list', (request) => new Stats(access, stats).of(request, asked));
}
