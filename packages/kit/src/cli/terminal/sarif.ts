import { checkDescriptions } from '../../app/check/checks.ts';

interface SarifFinding {
  readonly id?: string;
  readonly subject: string;
  readonly state: string;
  readonly detail: string;
}

const LEVELS: Readonly<Record<string, string>> = { fault: 'error', warning: 'warning', silenced: 'note' };

/** Findings as SARIF 2.1.0, which code hosts show beside the code. Only findings with a rule are in it. */
export function sarifLog(findings: readonly SarifFinding[]): object {
  const results = findings.filter((finding) => finding.id !== undefined && finding.state !== 'ok');
  const ids = [...new Set(results.map(({ id = '' }) => id))].sort();
  return {
    $schema: 'https://json.schemastore.org/sarif-2.1.0.json',
    version: '2.1.0',
    runs: [
      {
        tool: {
          driver: {
            name: 'kit doctor',
            rules: ids.map((id) => {
              const { title = id, explanation = id, remedy = '' } = checkDescriptions[id] ?? {};
              return {
                id,
                shortDescription: { text: title },
                fullDescription: { text: explanation },
                help: { text: remedy || explanation },
              };
            }),
          },
        },
        results: results.map((finding) => resultOf(finding, ids)),
      },
    ],
  };
}

function resultOf({ id = '', subject, state, detail }: SarifFinding, ids: readonly string[]): object {
  const suppressions = state === 'silenced' ? [{ kind: 'inSource', justification: detail.replace(/^.*Silenced: /s, '') }] : undefined;
  const message = { text: `${subject}: ${detail}` };
  return { ruleId: id, ruleIndex: ids.indexOf(id), level: LEVELS[state] ?? 'note', message, suppressions };
}
