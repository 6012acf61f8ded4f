import { resource } from '../crud/checks/declare-resource.ts';
import { type AnyResource, STAFF } from '../crud/declare/resource.ts';
import { asStandIn } from '../crud/policy/stand-in.ts';
import type { Model } from '../db/declare/model.ts';

const made = new WeakMap<Model, Map<string, AnyResource>>();

/** The resource of a model that has none: staff see and change every row, and nobody else reaches one. One per model and database. */
export function bareResource(model: Model, using: string): AnyResource {
  let byDatabase = made.get(model);
  if (byDatabase === undefined) made.set(model, (byDatabase = new Map()));
  const known = byDatabase.get(using);
  if (known !== undefined) return known;
  const declared = asStandIn(resource(model, { name: model.name, audiences: { [STAFF]: { rows: true } }, using }));
  byDatabase.set(using, declared);
  return declared;
}
