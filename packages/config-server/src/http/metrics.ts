import type { Section } from '../section/section.ts';

interface Family {
  readonly name: string;
  readonly type: 'gauge' | 'counter';
  readonly help: string;
  readonly read: (section: Section) => number;
}

/** Six families. A label names the section and nothing else: no key path, no file, no value. */
const FAMILIES: readonly Family[] = [
  {
    name: 'config_generation',
    type: 'gauge',
    help: 'Generation of the document in service.',
    read: (section) => section.installed.generation,
  },
  {
    name: 'config_installs_total',
    type: 'counter',
    help: 'Documents installed since the process started.',
    read: (section) => section.installsTotal,
  },
  {
    name: 'config_reload_failures_total',
    type: 'counter',
    help: 'Reloads that failed since the process started.',
    read: (section) => section.failuresTotal,
  },
  {
    name: 'config_consecutive_failures',
    type: 'gauge',
    help: 'Consecutive failed reloads.',
    read: (section) => section.status(0).consecutiveFailures,
  },
  {
    name: 'config_last_install_timestamp_seconds',
    type: 'gauge',
    help: 'When the document in service was installed, in Unix time.',
    read: (section) => section.installed.installedAt / 1000,
  },
  { name: 'config_healthy', type: 'gauge', help: 'Whether the last reload succeeded.', read: (section) => (section.healthy ? 1 : 0) },
];

export const METRICS_CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

export function renderMetrics(sections: readonly Section[]): string {
  const lines: string[] = [];
  for (const family of FAMILIES) {
    lines.push(`# HELP ${family.name} ${family.help}`, `# TYPE ${family.name} ${family.type}`);
    for (const section of sections) {
      const { application, profile } = section.definition;
      lines.push(`${family.name}{application="${application}",profile="${profile}"} ${family.read(section)}`);
    }
  }
  return `${lines.join('\n')}\n`;
}
