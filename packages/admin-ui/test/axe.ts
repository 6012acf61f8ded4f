import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { AxeResults } from 'axe-core';
import type { Frame, Page } from 'playwright-core';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** Serious and critical findings of axe, each with the element it is about: of all rules, or of those about colours. */
export async function findings(page: Page | Frame, rules: 'all' | 'colours' = 'all'): Promise<string[]> {
  // Through the debugger, which the page's own policy does not bind; once per document.
  if (await page.evaluate("typeof axe === 'undefined'")) await page.evaluate(`${axe}; 0`);
  const only = rules === 'all' ? '' : ', runOnly: ["color-contrast", "link-in-text-block"]';
  const results = (await page.evaluate(`axe.run({ resultTypes: ["violations"]${only} })`)) as AxeResults;
  return results.violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, nodes }) =>
      nodes.slice(0, 3).map((node) => `${id}: ${node.html.slice(0, 160)} ${node.any.map((check) => check.message).join(' ')}`),
    );
}
