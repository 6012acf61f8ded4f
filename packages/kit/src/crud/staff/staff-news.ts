import type { App } from '../../app/declare/module.ts';
import { inTime } from '../../auth/rights/in-time.ts';
import type { Db } from '../../db/engine/db.ts';
import type { Where } from '../../db/sql/where/where.ts';
import type { ServiceScope } from '../../di/container.ts';
import type { Item } from '../declare/item.ts';
import { changeReaderOf } from '../live/change-reader.ts';
import { notLive, rowsNow } from '../live/list-now.ts';
import { newsOf } from '../live/live-events.ts';
import type { LiveList, LiveSource } from '../live/live-stream.ts';
import { type Moment, requestAt } from '../live/moment.ts';
import type { SharedAccess } from '../live/shared-access.ts';
import { STAFF } from '../declare/resource.ts';
import type { MountedResource } from '../mount/mounted-resource.ts';
import type { Policy } from '../policy/policy.ts';
import { type CallerInTransaction, requestOf } from '../serve/crud-of.ts';

/** What a member of staff follows. */
export interface StaffFollowing {
  /** The only one. Undefined: all that this member of staff sees. */
  readonly row: Item | undefined;
  readonly signal: AbortSignal;
  /** Throws where the site does not show them the list any more. */
  readonly requireRole: () => Promise<void>;
}

/** At first once, then for each batch of changes. */
export async function* staffNews(
  app: App,
  mounted: MountedResource,
  caller: CallerInTransaction,
  following: StaffFollowing,
): AsyncGenerator<void> {
  if (!mounted.policy.isLogged) throw notLive();
  await using services = app.services.scope();
  yield* newsOf(app.db, changeReaderOf(app), new StaffNews(app, mounted, caller, services, following));
}

/** The rows that a member of staff sees, deleted ones included, as a stream follows them. Only that they change is told. */
class StaffNews implements LiveSource {
  readonly #app: App;
  readonly #mounted: MountedResource;
  readonly #caller: CallerInTransaction;
  readonly #services: ServiceScope;
  readonly #following: StaffFollowing;

  constructor(app: App, mounted: MountedResource, caller: CallerInTransaction, services: ServiceScope, following: StaffFollowing) {
    this.#app = app;
    this.#mounted = mounted;
    this.#caller = caller;
    this.#services = services;
    this.#following = following;
  }

  get policy(): Policy {
    return this.#mounted.policy;
  }

  readonly isSteady = false;

  get signal(): AbortSignal {
    return this.#following.signal;
  }

  open(shared: SharedAccess, moment: Moment, tx?: Db): Promise<LiveList> {
    return inTime('the rules of a live list', this.#open(shared, moment, tx));
  }

  async #open({ rowsOf }: SharedAccess, moment: Moment, tx: Db | undefined): Promise<LiveList> {
    await this.#following.requireRole();
    const { databases = this.#app.databases } = this.#caller;
    const caller = { ...this.#caller, databases: tx === undefined ? databases : { ...databases, [tx.using]: tx } };
    const made = requestOf(this.#app, caller, 'list', this.#services, STAFF);
    const { row } = this.#following;
    const { name } = this.policy.key;
    const only = row === undefined ? undefined : ({ [name]: row[name] } as Where);
    return rowsNow(this.#mounted, requestAt(made, moment.at, rowsOf), moment, (asked) => this.policy.rows.visible(asked, 'any'), only);
  }

  /** They begin again with what they read themselves. */
  seal(): Promise<string> {
    return Promise.resolve('');
  }
}
