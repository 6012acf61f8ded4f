import type { Model } from '../../db/declare/model.ts';
import type { Columns } from '../../db/declare/rows.ts';
import type { Where } from '../../db/sql/where/where.ts';
import { InvalidOptions, requireArguments } from '../../options/read-options.ts';
import { aModel } from '../../options/value-rule.ts';
import type { NoOtherValue } from '../declare/checked-where.ts';
import { eventTypesOf } from '../declare/event-types.ts';
import { singular } from '../../db/declare/component-name.ts';
import { checkOptions, resourceRules } from '../options/option-rules.ts';
import { databaseFaults, resourceFaults } from './policy-faults.ts';
import type { Name, Relations } from '../declare/relation.ts';
import {
  type AnyResource,
  type AnyResourceOptions,
  type AudienceRule,
  type RelatedOf,
  type Resource,
  type ResourceOptions,
  STAFF,
} from '../declare/resource.ts';

/** A type of its own: editors show its name in place of all that it infers. */
type DeclareResource = <
  C extends Columns,
  // oxlint-disable-next-line typescript/no-empty-object-type -- no relations
  const R extends Relations = {},
  const O extends Name<C> = never,
  const N extends Name<C> = never,
  const V extends Name<C> = never,
  const I extends Name<C> = Name<C>,
  const S extends Name<C> = never,
  const T extends string = never,
  const W extends (Where<C, RelatedOf<R>> & NoOtherValue) | boolean = boolean,
  // oxlint-disable-next-line typescript/no-empty-object-type -- no computed fields
  const Q = {},
  // oxlint-disable-next-line typescript/no-empty-object-type -- no computed fields
  Y = {},
  // oxlint-disable-next-line typescript/no-empty-object-type -- no column in another form
  const Z = {},
  // oxlint-disable-next-line typescript/no-empty-object-type -- no actions
  A = {},
>(
  model: Model<C>,
  options: ResourceOptions<C, R, O, N, V, I, S, T, W, Q, Y, Z, A>,
) => Resource<C, R, O | N | V, I, T | Extract<keyof A, string>, Extract<keyof Q, string>>;

function declareResource(model: Model, options: GivenOptions): AnyResource {
  requireArguments('resource()', { model }, { model: aModel });
  const place = `resource(${model.name})`;
  checkOptions(place, options, resourceRules);
  if (options.admin !== undefined && options.audiences?.[STAFF] !== undefined)
    throw new InvalidOptions([
      {
        id: 'E013',
        message: `${place}: has admin and audiences.${STAFF}.`,
        hint: `admin is short for audiences.${STAFF}: remove one of them.`,
      },
    ]);
  const name = options.name ?? singular(model.name);
  const declared: AnyResource = {
    isResource: true,
    name,
    model,
    options: withAudiences(options),
    relations: options.relations ?? {},
    eventTypes: eventTypesOf(name, Object.keys({ ...options.transitions, ...options.actions })),
    faults: resourceFaults,
    databaseFaults: async (app) => databaseFaults(declared, app),
  };
  return Object.freeze(declared);
}

/**
 * Declares the policy of a model. Who may call an operation is said where it is mounted; which rows and fields, here.
 *
 * @example
 * ```ts
 * const orderResource = resource(orders, {
 *   owner: 'owner_id',
 *   input: ['item', 'quantity'],
 *   fields: { margin: visibleTo(isStaff) },
 *   relations: { customer: one(() => customers, 'customer_id') },
 * });
 * ```
 */
export const resource: DeclareResource = declareResource as unknown as DeclareResource;

type GivenOptions = AnyResourceOptions & { readonly admin?: AudienceRule };

/** `admin` is the short form of an audience. */
function withAudiences({ admin, ...options }: GivenOptions): AnyResourceOptions {
  return admin === undefined ? options : { ...options, audiences: { ...options.audiences, [STAFF]: admin } };
}
