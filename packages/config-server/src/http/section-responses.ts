import { explainPath, winningOrigin } from '../document/explain.ts';
import { joinKeyPath, leafPaths, splitKeyPath } from '../document/key-path.ts';
import { LoadFailure } from '../document/load-failure.ts';
import type { LoadedDocument } from '../section/load.ts';
import type { Installed, Section } from '../section/section.ts';
import { json, type HttpResponse } from './response.ts';

/** Responses about a section that hold no value of it. */

const pathResponses = new WeakMap<Installed, HttpResponse>();

export function pathsResponse(section: Section): HttpResponse {
  const { installed } = section;
  let response = pathResponses.get(installed);
  if (response === undefined) {
    const { application, profile } = section.definition;
    const paths = leafPaths(installed.document).map(joinKeyPath);
    response = json(200, { application, profile, generation: installed.generation, paths });
    pathResponses.set(installed, response);
  }
  return response;
}

export function explainResponse(section: Section, path: string): HttpResponse {
  const { application, profile } = section.definition;
  return json(200, { application, profile, path, ...explainPath(section.layers, splitKeyPath(path)) });
}

export function statusResponse(section: Section, now: number): HttpResponse {
  const { application, profile } = section.definition;
  const status = section.status(now);
  const failure = status.lastFailure;
  return json(200, {
    application,
    profile,
    generation: status.generation,
    healthy: status.healthy,
    consecutive_failures: status.consecutiveFailures,
    stale_for_seconds: status.staleForMs / 1000,
    installed_at: new Date(status.installedAt).toISOString(),
    last_reason: status.lastReason,
    last_failure: failure && { ...failurePlace(failure), at: new Date(failure.at).toISOString() },
    ...(status.commit === undefined ? {} : { commit: status.commit.id }),
  });
}

export function historyResponse(section: Section): HttpResponse {
  const { application, profile } = section.definition;
  const generations = section.history.map((entry) => ({
    generation: entry.generation,
    installed_at: new Date(entry.installedAt).toISOString(),
    reason: entry.reason,
    commit: entry.commit?.id ?? null,
    author: entry.commit?.author ?? null,
    committed_at: entry.commit === undefined ? null : new Date(entry.commit.committedAt).toISOString(),
    changed: entry.changed ?? null,
    changed_total: entry.changedTotal,
  }));
  return json(200, { application, profile, generations });
}

/** Whether the next load would succeed: loads without installing. */
export async function checkResponse(section: Section): Promise<HttpResponse> {
  const { application, profile } = section.definition;
  try {
    const resolved = resolvedPaths(await section.dryRun());
    return json(200, { application, profile, ok: true, resolved, unknown: [], failure: null });
  } catch (error) {
    if (!(error instanceof LoadFailure)) throw error;
    const failure = { ...failurePlace(error), message: error.message };
    return json(200, { application, profile, ok: false, resolved: [], unknown: [], failure });
  }
}

function failurePlace({ kind, origin, key }: Pick<LoadFailure, 'kind' | 'origin'> & { readonly key?: string | undefined }): object {
  return { kind, origin, ...(key === undefined ? {} : { key }) };
}

function resolvedPaths(loaded: LoadedDocument): { path: string; origin: string }[] {
  return leafPaths(loaded.document).map((keys) => ({ path: joinKeyPath(keys), origin: winningOrigin(loaded.layers, keys) }));
}
