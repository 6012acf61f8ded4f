import type { UserDirectory } from '../../auth/people/user-directory.ts';
import type { Model } from '../../db/declare/model.ts';
import type { ControllerBase } from '../../http/compile/controller.ts';
import type { DeclaredParts } from '../../http/compile/declared-parts.ts';
import { Policy } from './policy.ts';
import { PEOPLE } from '../declare/people.ts';
import { hasRowRule, isResource, type AnyResource } from '../declare/resource.ts';
import { isStandIn } from './stand-in.ts';

/** A controller that brings the policy of its model. */
interface ResourceController {
  readonly crudResource: AnyResource;
  /** Controllers whose routes are below the records of this one. */
  readonly controllersBelow?: readonly ControllerBase[];
  /** Its lists are live. */
  readonly isLive?: boolean;
}

export function hasResource(controller: object): controller is ResourceController {
  return isResource((controller as Partial<ResourceController>).crudResource);
}

/** Two resources that would both say which rows of a model an audience sees. */
interface Repeated {
  readonly model: Model;
  /** Null: the resources' own rules. */
  readonly audience: string | null;
}

/** The resources of a model: by audience, the one that relations and references of others lead to. Null: without an audience. */
type ByAudience = Map<string | null, AnyResource>;

/**
 * Every policy of an app: one per resource, audience and database, from mounted controllers, modules and `createApp({ resources })`. Where a module and the
 * app declare resources of one model, a controller keeps its own, and everything else uses the app's.
 */
export class Policies {
  readonly #policies = new Map<AnyResource, Map<string, Policy>>();
  readonly #byModel = new Map<Model, ByAudience>();
  readonly repeated: readonly Repeated[];

  readonly #live: ReadonlySet<object>;
  readonly #triggered = new Set<object>();
  readonly #hasTenants: boolean;
  readonly #users: UserDirectory | null;
  #people: Policy | undefined;

  /** `live`: models with live lists. */
  constructor(
    resources: Iterable<AnyResource>,
    { modules, hasTenants, users }: Pick<DeclaredParts, 'modules' | 'hasTenants' | 'users'>,
    live: ReadonlySet<object> = new Set(),
  ) {
    this.#live = live;
    this.#hasTenants = hasTenants;
    this.#users = users;
    const ofModules = new Set<object>(modules.flatMap((module) => module.resources ?? []));
    const [fromModules, own] = [new Map<Model, ByAudience>(), new Map<Model, ByAudience>()];
    const repeated: Repeated[] = [];
    for (const resource of withoutIdle([...new Set(resources)])) {
      this.#policies.set(resource, new Map());
      if (resource.options.changes === 'trigger') this.#triggered.add(resource.model);
      repeated.push(...clashes(ofModules.has(resource) ? fromModules : own, resource));
    }
    for (const each of [fromModules, own])
      for (const [model, known] of each) this.#byModel.set(model, new Map([...(this.#byModel.get(model) ?? []), ...known]));
    this.repeated = repeated;
  }

  /** The policy of every resource, without an audience. */
  *all(): Iterable<Policy> {
    for (const resource of this.#policies.keys()) yield this.of(resource);
  }

  has(resource: AnyResource): boolean {
    return this.#policies.has(resource);
  }

  /** The policy that others reach the rows of a model by. An audience that no resource of the model has sees what it would see without one. */
  find(model: Model, audience: string | null = null, moved: Moved = asDeclared): Policy | undefined {
    if ((model as object) === PEOPLE) return this.#ofPeople();
    const known = this.#byModel.get(model);
    const resource = known?.get(audience) ?? known?.get(null);
    return resource === undefined ? undefined : this.of(resource, audience, moved(usingOf(resource)));
  }

  /** One policy per model that has one for the audience. */
  *serving(audience: string | null = null, moved: Moved = asDeclared): Iterable<Policy> {
    for (const model of this.#byModel.keys()) {
      const policy = this.find(model, audience, moved);
      if (policy !== undefined) yield policy;
    }
  }

  /** `using`: the database of a controller. Resources of the same database, which relations lead to, move with it. */
  of(resource: AnyResource, audience: string | null = null, using: string = usingOf(resource)): Policy {
    const made = this.#policies.get(resource);
    if (made === undefined)
      throw new Error(
        `The resource "${resource.name}" is not part of this app: mount its controller, or give it to createApp({ resources }).`,
      );
    const place = JSON.stringify([audience, using]);
    let policy = made.get(place);
    if (policy === undefined) {
      const declared = usingOf(resource);
      const moved: Moved = (other) => (other === declared ? using : other);
      policy = new Policy(resource, {
        policyOf: (model) => this.find(model, audience, moved),
        all: () => this.serving(audience, moved),
        hasTenants: this.#hasTenants,
        users: this.#users,
        audience,
        using,
        isLogged: using === 'default' && this.#live.has(resource.model),
        isTriggered: this.#triggered.has(resource.model),
      });
      made.set(place, policy);
    }
    return policy;
  }

  /** The users of the app, which relations lead to; undefined where it has none. They are in its default database. */
  #ofPeople(): Policy | undefined {
    if (this.#users === null) return undefined;
    return (this.#people ??= new Policy(PEOPLE_RESOURCE, {
      policyOf: () => undefined,
      all: () => [],
      hasTenants: false,
      users: this.#users,
      audience: null,
      using: 'default',
      isLogged: false,
      isTriggered: false,
    }));
  }
}

/** Stand-ins only serve models that no other resource declares. */
function withoutIdle(resources: readonly AnyResource[]): AnyResource[] {
  const declared = new Set(resources.flatMap((each) => (isStandIn(each) ? [] : [each.model])));
  return resources.filter((each) => !isStandIn(each) || !declared.has(each.model));
}

const PEOPLE_RESOURCE: AnyResource = Object.freeze({
  isResource: true,
  name: 'app_user',
  model: PEOPLE,
  options: { unscoped: true as const },
  relations: {},
  eventTypes: {},
});

/** The database that is used in place of another. */
type Moved = (using: string) => string;
const asDeclared: Moved = (using) => using;

function usingOf({ options: { using = 'default' } }: AnyResource): string {
  return using;
}

/** Notes what a resource decides; what another one decides already is a clash. */
function clashes(known: Map<Model, ByAudience>, resource: AnyResource): Repeated[] {
  const model = resource.model as unknown as Model;
  const byAudience: ByAudience = known.get(model) ?? new Map();
  known.set(model, byAudience);
  const audiences = [...(hasRowRule(resource.options) ? [null] : []), ...Object.keys(resource.options.audiences ?? {})];
  const repeated = audiences.find((audience) => byAudience.has(audience));
  for (const audience of audiences) if (!byAudience.has(audience)) byAudience.set(audience, resource);
  return repeated === undefined ? [] : [{ model, audience: repeated }];
}

/** Controllers of one app share one list, and so their policies. */
const known = new WeakMap<readonly ControllerBase[], Policies>();

function resourcesOf(controller: object): AnyResource[] {
  return hasResource(controller) ? [controller.crudResource, ...(controller.controllersBelow ?? []).flatMap(resourcesOf)] : [];
}

function liveModelsOf(controller: object): object[] {
  if (!hasResource(controller)) return [];
  return [
    ...(controller.isLive === true ? [controller.crudResource.model] : []),
    ...(controller.controllersBelow ?? []).flatMap(liveModelsOf),
  ];
}

export function policiesOf(declared: DeclaredParts): Policies {
  const { controllers, resources } = declared;
  let policies = known.get(controllers);
  if (policies === undefined) {
    const mounted = controllers.flatMap(resourcesOf);
    policies = new Policies([...mounted, ...resources.filter(isResource)], declared, new Set(controllers.flatMap(liveModelsOf)));
    known.set(controllers, policies);
  }
  return policies;
}
