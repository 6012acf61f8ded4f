import { ActionIcon, Menu } from '@mantine/core';
import type { MouseEvent } from 'react';
import { exportAddress, requestHeaders, type ListRequest } from '../api/client.ts';
import { readFault } from '../api/fault.ts';
import type { AdminFileFormat, AdminResourceShape } from '../api/shapes.ts';
import { sayFailed } from '../feedback/toast.ts';
import { isFramed } from '../frame/host.ts';
import { Icon } from '../icons/icon.tsx';
import { hashOf } from '../routing/location.ts';
import { isNarrowed } from './list-query.ts';

const FORMATS: Readonly<Record<AdminFileFormat, string>> = { csv: 'CSV', jsonl: 'JSON Lines' };

/** In a frame the browser has no session to send by itself: the page fetches the file. */
async function downloadHere(event: MouseEvent, name: string): Promise<void> {
  event.preventDefault();
  const { href } = event.currentTarget as HTMLAnchorElement;
  try {
    const response = await fetch(href, { headers: requestHeaders(), credentials: 'omit' });
    if (!response.ok) throw await readFault(response);
    const url = URL.createObjectURL(await response.blob());
    Object.assign(document.createElement('a'), { href: url, download: name }).click();
    URL.revokeObjectURL(url);
  } catch (error) {
    sayFailed(error);
  }
}

/** The list as a file, and files into the list. */
export function FileMenu({ resource, query }: { readonly resource: AdminResourceShape; readonly query: ListRequest }) {
  const { exports = [], imports } = resource;
  if (exports.length === 0 && imports === undefined) return null;
  return (
    <Menu position="bottom-end" width={260} withinPortal>
      <Menu.Target>
        <ActionIcon variant="default" size={36} aria-label="Download or import" title="Download or import">
          <Icon name="file" />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        {exports.length > 0 && <Menu.Label>{isNarrowed(query) ? 'Filtered records' : 'All records'}</Menu.Label>}
        {exports.map((format) => (
          <Menu.Item
            key={format}
            component="a"
            href={exportAddress(resource.name, query, format)}
            download
            {...(isFramed ? { onClick: (event: MouseEvent) => void downloadHere(event, `${resource.name}.${format}`) } : {})}
          >
            Download as {FORMATS[format]}
          </Menu.Item>
        ))}
        {imports !== undefined && (
          <>
            {exports.length > 0 && <Menu.Divider />}
            <Menu.Item component="a" href={hashOf({ page: 'import', resource: resource.name })}>
              Import a file …
            </Menu.Item>
          </>
        )}
      </Menu.Dropdown>
    </Menu>
  );
}
