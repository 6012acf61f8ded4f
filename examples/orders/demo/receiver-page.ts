/** A webhook that arrived with a valid signature. */
export interface ReceivedMessage {
  readonly verified: true;
  readonly webhook_id: string;
  readonly type: string;
  readonly timestamp: string;
  readonly data: unknown;
}

const REFRESH_SECONDS = 2;

/** What arrived, newest first; the page loads itself again. */
export function receiverPage(messages: readonly ReceivedMessage[]): string {
  const items = messages.toReversed().map(
    ({ webhook_id: id, type, timestamp, data }) => `<li>
        <header><strong>${escaped(type)}</strong> <span class="badge">✓ signature verified</span> <time>${escaped(timestamp)}</time></header>
        <p><code>${escaped(id)}</code></p>
        <pre>${escaped(JSON.stringify(data, null, 2))}</pre>
      </li>`,
  );
  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <meta http-equiv="refresh" content="${REFRESH_SECONDS}" />
    <title>Webhook receiver (${messages.length})</title>
    <style>
      :root { color-scheme: light dark; --ground: #f6f7f9; --panel: #ffffff; --text: #1d2229; --quiet: #545d69; --line: #dde1e6; --accent: #3f56c4; --good: #1f7a4d; --good-soft: #e6f4ec }
      @media (prefers-color-scheme: dark) { :root { --ground: #121519; --panel: #181b20; --text: #e3e6ea; --quiet: #a3abb6; --line: #323840; --accent: #9fb0f7; --good: #5fc590; --good-soft: #17301f } }
      body { background: var(--ground); color: var(--text); font: 16px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem }
      ul { list-style: none; padding: 0 }
      li { background: var(--panel); border: 1px solid var(--line); border-radius: 8px; padding: 0.75rem 1rem; margin: 0 0 1rem }
      h1 { color: var(--accent) }
      header { display: flex; flex-wrap: wrap; gap: 0.75rem; align-items: baseline }
      .badge { color: var(--good); background: var(--good-soft); border-radius: 999px; padding: 0 0.6rem; font-size: 0.875rem; font-weight: 600 }
      p, time { margin: 0; color: var(--quiet); font-size: 0.875rem }
      pre { overflow-x: auto; margin: 0.5rem 0 0; font-size: 0.875rem }
    </style>
  </head>
  <body>
    <h1>Webhook receiver</h1>
    <p>What another team would run. It takes webhooks, verifies their signature and deduplicates them by <code>webhook-id</code>. Updated every ${REFRESH_SECONDS} s; <code>curl</code> gets JSON.</p>
    <ul>${items.length === 0 ? '<li>Nothing has arrived yet. Place an order.</li>' : items.join('')}</ul>
  </body>
</html>
`;
}

function escaped(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
