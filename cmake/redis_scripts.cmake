# The scripts of the Redis store, put into the program as they are: a source file with each text by its name.
# Called in script mode with OUT and SCRIPTS (separated by commas).
string(REPLACE "," ";" scripts "${SCRIPTS}")
set(text "#include \"store/redis_scripts.hpp\"\n\nnamespace belay::store {\n\nscript_file const script_files[] = {\n")
foreach(file IN LISTS scripts)
  get_filename_component(name ${file} NAME_WE)
  file(READ ${file} content)
  string(APPEND text "    {\"${name}\", R\"lua(${content})lua\"},\n")
endforeach()
string(APPEND text "    {{}, {}},\n};\n\n}\n")
file(WRITE ${OUT}.new "${text}")
file(COPY_FILE ${OUT}.new ${OUT} ONLY_IF_DIFFERENT)
