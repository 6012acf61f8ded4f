import type { CompiledWhere, MovingWhere } from '../../db/sql/where/compile-where.ts';
import type { TimeBound } from '../../db/sql/where/moving-where.ts';
import type { Where } from '../../db/sql/where/where.ts';
import type { AccessContext, RowAccess } from '../declare/row-access.ts';
import type { CrudRequest } from '../policy/crud-request.ts';

/** The time that a list is decided at. */
export interface Moment {
  readonly at: Date;
  /** False: nothing in the list depends on the time, as it was found when it was read from its start. */
  readonly isTimed?: boolean;
}

/** A day, and a little: a rule that rounds the time to seconds or hours does not look as if it moved with the clock. */
export const LATER_MS = 86_399_989;

/** A request at a time that stands still. A class: rights are asked for thousands of them, and an object with the request as its prototype takes ten times as long. */
class RequestAt implements CrudRequest {
  readonly context: CrudRequest['context'];
  readonly user: CrudRequest['user'];
  readonly principal: CrudRequest['principal'];
  readonly tenant: CrudRequest['tenant'];
  readonly action: CrudRequest['action'];
  readonly clock: CrudRequest['clock'];
  readonly requestId: CrudRequest['requestId'];
  readonly databases: CrudRequest['databases'];
  readonly audience: CrudRequest['audience'];
  readonly controller: CrudRequest['controller'];
  readonly asked: CrudRequest['asked'];
  readonly verdicts: CrudRequest['verdicts'];
  readonly scopes: CrudRequest['scopes'];
  readonly accessRows: CrudRequest['accessRows'];
  readonly #request: CrudRequest;

  constructor(request: CrudRequest, { clock, scopes, accessRows }: Pick<CrudRequest, 'clock' | 'scopes' | 'accessRows'>) {
    this.context = request.context;
    this.user = request.user;
    this.principal = request.principal;
    this.tenant = request.tenant;
    this.action = request.action;
    this.clock = clock;
    this.requestId = request.requestId;
    this.databases = request.databases;
    this.audience = request.audience;
    this.controller = request.controller;
    this.asked = request.asked;
    this.verdicts = request.verdicts;
    this.scopes = scopes;
    this.accessRows = accessRows;
    this.#request = request;
  }

  get services(): CrudRequest['services'] {
    return this.#request.services;
  }
}

/** The request at a time that stands still: everything that is decided for it is of one moment. */
export function requestAt(request: CrudRequest, at: Date, accessRows: CrudRequest['accessRows'] = request.accessRows): CrudRequest {
  return new RequestAt(request, { clock: { now: () => at }, scopes: new Map(), accessRows });
}

export function later({ at }: Moment): Date {
  return new Date(at.getTime() + LATER_MS);
}

/**
 * What rules say of a caller, as it moves with the clock: they are asked at two times. A rule that differs in another way is taken as it is now: the rights of
 * callers are asked again and again.
 */
export async function movingRules(
  request: CrudRequest,
  moment: Moment,
  rules: (request: CrudRequest) => Promise<readonly CompiledWhere[]>,
): Promise<readonly MovingWhere[]> {
  if (moment.isTimed === false) return rules(request);
  const first = new RequestAt(request, { clock: request.clock, scopes: request.scopes, accessRows: askedOnce(request.accessRows) });
  const now = await rules(first);
  const then = await rules(requestAt(first, later(moment)));
  return now.map((each, place) => each.moving(moment.at, then[place] as CompiledWhere, later(moment)) ?? each);
}

/** What an access says is a right of now: it is not asked about a later time. */
function askedOnce(ask: CrudRequest['accessRows']): CrudRequest['accessRows'] {
  if (ask === undefined) return undefined;
  const known = new Map<RowAccess, Map<object, Promise<Where | boolean>>>();
  return (access: RowAccess, context: AccessContext) => {
    const byModel = known.get(access) ?? new Map<object, Promise<Where | boolean>>();
    known.set(access, byModel);
    const answer = byModel.get(context.model) ?? ask(access, context);
    byModel.set(context.model, answer);
    return answer;
  };
}

/** All that conditions compare with the time. */
export function boundsOf(conditions: Iterable<MovingWhere>): TimeBound[] {
  return [...conditions].flatMap(({ bounds }) => bounds);
}
