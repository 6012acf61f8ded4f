import type { App } from '../../app/declare/module.ts';
import { inTime } from '../../auth/rights/in-time.ts';
import type { Db } from '../../db/engine/db.ts';
import type { Where } from '../../db/sql/where/where.ts';
import type { ServiceScope } from '../../di/container.ts';
import { changeReaderOf } from '../live/change-reader.ts';
import { knownPeople } from '../live/known-people.ts';
import { followedFields, listNow } from '../live/list-now.ts';
import { liveEvents } from '../live/live-events.ts';
import type { LiveList, LiveSource } from '../live/live-stream.ts';
import { type Moment, requestAt } from '../live/moment.ts';
import type { SharedAccess } from '../live/shared-access.ts';
import { defaultOrdering } from '../read/ordering.ts';
import type { Policy } from '../policy/policy.ts';
import type { LiveChange } from '../live/live-change.ts';
import type { CrudRequest } from '../policy/crud-request.ts';
import type { ResourceAccess } from './resource-access.ts';

interface Following {
  readonly where: Where | undefined;
  readonly signal: AbortSignal;
  /** The request of the caller, with these databases. */
  readonly request: (services: ServiceScope, databases: Readonly<Record<string, Db>>) => CrudRequest;
}

/** The list of a program's caller, then its changes, until the signal aborts. */
export async function* programLive(app: App, access: ResourceAccess, following: Following): AsyncGenerator<LiveChange, void> {
  if (!access.policy.isLogged)
    throw new Error(
      `crudOf(${access.policy.name}).live(): its changes are not logged. Mount a controller of the resource with live: true.`,
    );
  await using services = app.services.scope();
  const source = new ProgramList(app, access, services, following);
  try {
    for await (const { event, data } of liveEvents(app.db, changeReaderOf(app), source, undefined))
      yield { event, ...(data as object) } as LiveChange;
  } catch (error) {
    if (!following.signal.aborted) throw error;
  }
}

class ProgramList implements LiveSource {
  readonly #app: App;
  readonly #access: ResourceAccess;
  readonly #services: ServiceScope;
  readonly #following: Following;

  constructor(app: App, access: ResourceAccess, services: ServiceScope, following: Following) {
    this.#app = app;
    this.#access = access;
    this.#services = services;
    this.#following = following;
  }

  /** Nobody looks at the caller of a program. */
  readonly isSteady = false;

  get signal(): AbortSignal {
    return this.#following.signal;
  }

  get policy(): Policy {
    return this.#access.policy;
  }

  open(shared: SharedAccess, moment: Moment, tx?: Db): Promise<LiveList> {
    return inTime('the rules of a live list', this.#open(shared, moment, tx));
  }

  async #open(shared: SharedAccess, moment: Moment, tx: Db | undefined): Promise<LiveList> {
    const { databases } = this.#app;
    const { request: requestWith, where: only } = this.#following;
    const made = requestWith(this.#services, tx === undefined ? databases : { ...databases, [tx.using]: tx });
    const request = requestAt(made, moment.at, shared.rowsOf);
    const where = only === undefined ? [] : [only];
    const ordering = defaultOrdering(this.policy, this.#access.list.ordering);
    const view = await this.#access.view(request);
    const [fields, known] = [followedFields(this.#access, view), await knownPeople(this.policy, request, shared)];
    return listNow(this.#access, request, view, { where, ordering, fields, known }, moment);
  }

  /** A program that begins again reads the list again. */
  seal(): Promise<string> {
    return Promise.resolve('');
  }
}
