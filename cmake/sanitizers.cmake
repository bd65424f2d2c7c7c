if(BELAY_SANITIZE)
  add_compile_options(-fsanitize=${BELAY_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${BELAY_SANITIZE})
endif()
