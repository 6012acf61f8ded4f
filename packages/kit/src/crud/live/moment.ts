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

/** The request at a time that stands still: everything that is decided for it is of one moment. */
export function requestAt(request: CrudRequest, at: Date): CrudRequest {
  return Object.create(request, { clock: { value: { now: () => at } }, scopes: { value: new Map() } }) as CrudRequest;
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
  const first = Object.create(request, { accessRows: { value: askedOnce(request.accessRows) } }) as CrudRequest;
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
