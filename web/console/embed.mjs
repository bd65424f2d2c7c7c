// Writes the built page as a table for src/app/console.hpp, and the assembler file that has the bytes.
//
//   node embed.mjs DIST OUT
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { extname, join, relative } from 'node:path';
import { gzipSync } from 'node:zlib';

const [dist, out] = process.argv.slice(2);
const types = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.json': 'application/json',
  '.woff2': 'font/woff2',
};

mkdirSync(join(out, 'gzip'), { recursive: true });
const files = readdirSync(dist, { recursive: true, withFileTypes: true })
  .filter(entry => entry.isFile())
  .map(entry => join(entry.parentPath ?? entry.path, entry.name))
  .sort()
  .map((file, index) => {
    const bytes = readFileSync(file);
    const packed = join(out, 'gzip', `${index}.gz`);
    writeFileSync(packed, gzipSync(bytes, { level: 9 }));
    const name = relative(dist, file);
    const type = types[extname(name)];
    if (!type) throw new Error(`no content type is known for ${name}`);
    const etag = createHash('sha256').update(bytes).digest('base64url').slice(0, 22);
    return { path: name === 'index.html' ? '/' : `/${name}`, type, etag, file, packed, index };
  });

const symbols = files.flatMap(({ index, file, packed }) => [
  [`belay_console_${index}_plain`, file],
  [`belay_console_${index}_gzip`, packed],
]);
writeFileSync(
  join(out, 'console_files.S'),
  `    .section .rodata
${symbols
  .map(
    ([symbol, file]) => `    .globl ${symbol}_begin, ${symbol}_end
${symbol}_begin:
    .incbin ${JSON.stringify(file)}
${symbol}_end:
    .byte 0
`,
  )
  .join('')}    .section .note.GNU-stack, "", %progbits
`,
);
writeFileSync(
  join(out, 'console_files.cpp'),
  `#include "app/console.hpp"

extern "C" {
${symbols.map(([symbol]) => `extern char const ${symbol}_begin[];\nextern char const ${symbol}_end[];\n`).join('')}}

namespace belay::app {

std::span<console_file const> console_files() noexcept
{
    static console_file const files[] = {
${files
  .map(({ path, type, etag, index }) => {
    const bytes = kind => `{belay_console_${index}_${kind}_begin, belay_console_${index}_${kind}_end}`;
    return `        {${JSON.stringify(path)}, ${JSON.stringify(type)}, ${JSON.stringify(`"${etag}"`)},\n         ${bytes('plain')}, ${bytes('gzip')}},\n`;
  })
  .join('')}    };
    return files;
}

}
`,
);
