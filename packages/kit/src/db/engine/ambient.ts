import { AsyncLocalStorage } from 'node:async_hooks';
import type { Database, Db } from './db.ts';
import type { Engine } from './engine.ts';

/** A transaction or savepoint of the running async context. Work started inside it may keep it after its end. */
export interface AmbientScope {
  readonly engine: Engine;
  readonly handle: Db;
  readonly outer: AmbientScope | undefined;
  isOpen(): boolean;
}

const scopes = new AsyncLocalStorage<AmbientScope>();

export function runInScope<R>(scope: AmbientScope, work: () => R): R {
  return scopes.run(scope, work);
}

/** The innermost scope, open or not; callers link new scopes to it. */
export function ambientScope(): AmbientScope | undefined {
  return scopes.getStore();
}

/** The innermost open transaction or savepoint of this engine in the running async context. */
export function openScopeOf(engine: Engine): AmbientScope | undefined {
  for (let scope = scopes.getStore(); scope !== undefined; scope = scope.outer) {
    if (scope.engine === engine && scope.isOpen()) return scope;
  }
  return undefined;
}

/** The transaction (innermost savepoint) that the running code is in, for code that cannot be handed one. */
export function currentTransaction(using = 'default'): Db | undefined {
  for (let scope = scopes.getStore(); scope !== undefined; scope = scope.outer) {
    if (scope.handle.using === using && scope.isOpen()) return scope.handle;
  }
  return undefined;
}

/** The innermost open transaction or savepoint on this database in the running async context. Unlike an alias, a database is one and the same. */
export function currentTransactionOn(database: Database): Db | undefined {
  for (let scope = scopes.getStore(); scope !== undefined; scope = scope.outer) {
    if (scope.handle.database === database && scope.isOpen()) return scope.handle;
  }
  return undefined;
}
