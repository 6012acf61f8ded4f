import { explainPath, winningOrigin } from '../document/explain.ts';
import { joinKeyPath, leafPaths, splitKeyPath } from '../document/key-path.ts';
import { LoadFailure } from '../document/load-failure.ts';
import type { LoadedDocument } from '../section/load.ts';
import type { Installed, Section } from '../section/section.ts';
import { json, type Answer } from './answer.ts';

/** The answers that tell about a section without telling a value of it. */

const pathAnswers = new WeakMap<Installed, Answer>();

export function pathsAnswer(section: Section): Answer {
  const { installed } = section;
  let answer = pathAnswers.get(installed);
  if (answer === undefined) {
    const { application, profile } = section.definition;
    const paths = leafPaths(installed.document).map(joinKeyPath);
    answer = json(200, { application, profile, generation: installed.generation, paths });
    pathAnswers.set(installed, answer);
  }
  return answer;
}

export function explainAnswer(section: Section, path: string): Answer {
  const { application, profile } = section.definition;
  return json(200, { application, profile, path, ...explainPath(section.layers, splitKeyPath(path)) });
}

export function statusAnswer(section: Section, now: number): Answer {
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
    last_failure: failure && { kind: failure.kind, origin: failure.origin, at: new Date(failure.at).toISOString() },
  });
}

/** Whether the next load would succeed, found out by loading without installing. */
export async function checkAnswer(section: Section): Promise<Answer> {
  const { application, profile } = section.definition;
  try {
    const resolved = resolvedPaths(await section.rehearse());
    return json(200, { application, profile, ok: true, resolved, unknown: [], failure: null });
  } catch (error) {
    if (!(error instanceof LoadFailure)) throw error;
    const failure = { kind: error.kind, origin: error.origin, message: error.message };
    return json(200, { application, profile, ok: false, resolved: [], unknown: [], failure });
  }
}

function resolvedPaths(loaded: LoadedDocument): { path: string; origin: string }[] {
  return leafPaths(loaded.document).map((keys) => ({ path: joinKeyPath(keys), origin: winningOrigin(loaded.layers, keys) }));
}
