import type { Model } from '../../db/declare/model.ts';
import type { ControllerBase } from '../../http/compile/controller.ts';
import { Policy } from './policy.ts';
import { isResource, type AnyResource } from '../declare/resource.ts';

/** A controller that brings the policy of its model. */
interface ResourceController {
  readonly crudResource: AnyResource;
}

export function hasResource(controller: object): controller is ResourceController {
  return isResource((controller as Partial<ResourceController>).crudResource);
}

/** Every policy of an app: one per model, from mounted controllers, modules and `createApp({ resources })`. */
export class Policies {
  readonly #byModel = new Map<Model, Policy>();
  /** Models that more than one resource declares. */
  readonly repeated: Model[] = [];

  constructor(resources: readonly AnyResource[]) {
    for (const resource of new Set(resources)) {
      const model = resource.model as unknown as Model;
      if (!this.#byModel.has(model))
        this.#byModel.set(
          model,
          new Policy(
            resource,
            (each) => this.#byModel.get(each),
            () => this.#byModel.values(),
          ),
        );
      else this.repeated.push(model);
    }
  }

  all(): Iterable<Policy> {
    return this.#byModel.values();
  }

  find(model: Model): Policy | undefined {
    return this.#byModel.get(model);
  }

  of(resource: AnyResource): Policy {
    const policy = this.#byModel.get(resource.model);
    if (policy !== undefined) return policy;
    throw new Error(
      `The resource "${resource.name}" is not part of this app: mount its controller, or give it to createApp({ resources }).`,
    );
  }
}

/** Controllers of one app share one list, and so their policies. */
const known = new WeakMap<readonly ControllerBase[], Policies>();

export function policiesOf({
  controllers,
  resources,
}: {
  readonly controllers: readonly ControllerBase[];
  readonly resources: readonly object[];
}): Policies {
  let policies = known.get(controllers);
  if (policies === undefined) {
    const mounted = controllers.flatMap((controller) => (hasResource(controller) ? [controller.crudResource] : []));
    policies = new Policies([...mounted, ...resources.filter(isResource)]);
    known.set(controllers, policies);
  }
  return policies;
}
